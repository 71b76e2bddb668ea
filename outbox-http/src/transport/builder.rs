//! Building the transport.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use outbox_core::{Error, Signer};

use super::{AttemptObserver, Inner, Webhooks};
use crate::client::{ClientSettings, Clients, EgressProxy, HttpVersion, Timeouts};
#[cfg(feature = "reqwest")]
use crate::client::{PooledClient, build_reqwest};
use crate::clock::WallClock;
use crate::destination::{Destinations, UrlDestinations};
use crate::encoding::Encoding;
#[cfg(feature = "reqwest")]
use crate::guard::GuardedResolver;
use crate::guard::{AddressGuard, Resolve, SystemResolver};
use crate::outcome::{Classifier, Strict};

/// Configures [`Webhooks`].
#[must_use]
pub struct WebhooksBuilder {
    signers: Vec<Arc<dyn Signer>>,
    unsigned: bool,
    destinations: Option<Arc<dyn Destinations>>,
    classifier: Arc<dyn Classifier>,
    observer: Option<Arc<dyn AttemptObserver>>,
    encoding: Encoding,
    heed_header: bool,
    client: ClientSettings,
    guard: AddressGuard,
    #[cfg(feature = "reqwest")]
    reqwest: Option<Reqwest>,
    timeouts: Timeouts,
    user_agent: String,
    max_request: usize,
    capture: usize,
    recheck: Duration,
    clock: WallClock,
}

impl WebhooksBuilder {
    pub(super) fn new() -> Self {
        Self {
            signers: Vec::new(),
            unsigned: false,
            destinations: None,
            classifier: Arc::new(Strict),
            observer: None,
            encoding: Encoding::raw(),
            heed_header: false,
            client: ClientSettings::new(Arc::new(SystemResolver::default())),
            guard: AddressGuard::public_internet(),
            #[cfg(feature = "reqwest")]
            reqwest: None,
            timeouts: Timeouts::default(),
            user_agent: concat!("outbox-http/", env!("CARGO_PKG_VERSION")).to_owned(),
            max_request: 2 << 20,
            capture: 1 << 10,
            recheck: Duration::from_secs(60),
            clock: WallClock::SYSTEM,
        }
    }

    /// Signs with this scheme. Called several times, every request carries all the signatures.
    pub fn signer(mut self, signer: impl Signer + 'static) -> Self {
        self.signers.push(Arc::new(signer));
        self
    }

    /// Sends without a signature where nothing signs, which receivers can't tell from anybody else's
    /// request. Default: events of an endpoint for which nothing signs wait, uncharged.
    pub const fn unsigned(mut self) -> Self {
        self.unsigned = true;
        self
    }

    /// Looks destinations up. Default: an event's destination is its URL.
    pub fn destinations(mut self, destinations: impl Destinations + 'static) -> Self {
        self.destinations = Some(Arc::new(destinations));
        self
    }

    /// Decides what answers mean. Default: [`Strict`].
    pub fn classifier(mut self, classifier: impl Classifier + 'static) -> Self {
        self.classifier = Arc::new(classifier);
        self
    }

    /// Sees every attempt with its status, phase and duration.
    pub fn observer(mut self, observer: impl AttemptObserver + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// What bodies look like. Default: [`Encoding::raw`].
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Heeds the response header `webhook-delivery` beside a status that means failure: `disable`
    /// means gone, `abort-message` rejected. Default: not.
    pub const fn heed_delivery_header(mut self) -> Self {
        self.heed_header = true;
        self
    }

    /// Where deliveries may go. Default: the public internet, ports 80 and 443.
    pub fn guard(mut self, guard: AddressGuard) -> Self {
        self.guard = guard;
        self
    }

    /// The opt-out for development and tests: every address and every port, `127.0.0.1` too. Never
    /// in production, where customers set URLs.
    pub fn allow_private_networks(self) -> Self {
        self.guard(AddressGuard::public_internet().allow_private_networks())
    }

    /// Looks host names up. Default: the system's resolver.
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.client.resolver = Arc::new(resolver);
        self
    }

    /// The deadlines. Default: 5 s to connect, 15 s to the head of the answer, 5 s for its body, 30 s
    /// in all.
    pub const fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// How long an idle connection is kept. Default: 4 s, less than common servers do.
    pub const fn idle_timeout(mut self, limit: Duration) -> Self {
        self.client.idle_timeout = limit;
        self
    }

    /// The most idle connections to one host. Default: 256.
    pub const fn idle_per_host(mut self, limit: usize) -> Self {
        self.client.idle_per_host = limit;
        self
    }

    /// Which versions of HTTP are spoken. Default: HTTP/1.1.
    pub const fn http(mut self, version: HttpVersion) -> Self {
        self.client.version = version;
        self
    }

    /// Trusts the certificates of this PEM text, beside Mozilla's.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): no certificate in it, or an
    /// unusable one.
    pub fn root_certificates(mut self, pem: &str) -> Result<Self, Error> {
        self.client.roots.add_pem(pem)?;
        Ok(self)
    }

    /// Trusts what the operating system trusts, beside Mozilla's certificates.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): the system has none.
    #[cfg(feature = "native-roots")]
    pub fn native_roots(mut self) -> Result<Self, Error> {
        self.client.roots.add_native()?;
        Ok(self)
    }

    /// Sends everything through this HTTP proxy, in `CONNECT` tunnels: `http://proxy:3128`, with
    /// `user:password@` where it asks for it. Proxies in the environment are never used.
    ///
    /// The proxy looks names up and dials, so checking addresses is its part; the guard goes on
    /// checking URLs. A proxy that is down or refuses costs no event an attempt.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): anything but `http://host:port`.
    pub fn egress_proxy(mut self, url: &str) -> Result<Self, Error> {
        self.client.proxy = Some(EgressProxy::new(url)?);
        Ok(self)
    }

    /// Delivers through a `reqwest` client made of these settings. Redirects, `Referer` and every
    /// proxy are switched off, and guard, resolver and the deadline to connect are put into it;
    /// whatever else was set stays, and certificates, HTTP version and pool are as it has them, not
    /// as they are set here. Endpoints with an identity or a guard of their own use the built-in
    /// client.
    #[cfg(feature = "reqwest")]
    pub fn reqwest(mut self, builder: reqwest::ClientBuilder) -> Self {
        self.reqwest = Some(Reqwest::Builder(Box::new(builder)));
        self
    }

    /// Delivers through this `reqwest` client as it is, its proxy and its deadlines included. The guard sees URLs only, not the addresses
    /// that are dialled, and a client that follows redirects can't be stopped, only found out:
    /// prefer [`reqwest`](Self::reqwest) where strangers choose URLs.
    #[cfg(feature = "reqwest")]
    pub fn reqwest_client(mut self, client: reqwest::Client) -> Self {
        self.reqwest = Some(Reqwest::Client(client));
        self
    }

    /// The `User-Agent`. Default: `outbox-http/` and the version.
    pub fn user_agent(mut self, value: impl Into<String>) -> Self {
        self.user_agent = value.into();
        self
    }

    /// The largest request body in bytes, as sent. Larger events are dead letters. Default: 2 MiB.
    pub const fn max_request(mut self, bytes: usize) -> Self {
        self.max_request = bytes;
        self
    }

    /// How many bytes of the body of a failed attempt's answer are kept for people. No more than 64
    /// KiB are read. Default: 1 KiB.
    pub const fn capture(mut self, bytes: usize) -> Self {
        self.capture = bytes;
        self
    }

    /// After how long a disabled destination is looked at again. Default: 1 minute.
    pub const fn recheck_disabled(mut self, after: Duration) -> Self {
        self.recheck = after;
        self
    }

    /// The clock of timestamps and of `Retry-After` dates. Default: the system's.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = WallClock::new(now);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig), naming the setting: no signer, a
    /// deadline of zero, a user agent that is no header value, an egress proxy beside a reqwest client.
    pub fn build(mut self) -> Result<Webhooks, Error> {
        self.timeouts.check()?;
        self.client.connect_timeout = self.timeouts.connect;
        if self.signers.is_empty() && self.destinations.is_none() && !self.unsigned {
            return Err(Error::invalid_config(
                "signer",
                "is missing; add one, or say `unsigned()`",
            ));
        }
        let user_agent = HeaderValue::from_str(&self.user_agent).map_err(|source| {
            Error::invalid_config("user_agent", "is no header value").with_source(source)
        })?;
        #[cfg(feature = "reqwest")]
        if self.reqwest.is_some() && self.client.proxy.is_some() {
            return Err(Error::invalid_config(
                "egress_proxy",
                "is not used by a reqwest client; set the proxy on a `reqwest::Client` of your own \
                 and hand it to `reqwest_client`",
            ));
        }
        let guard = Arc::new(self.guard);
        #[cfg(feature = "reqwest")]
        let clients = match self.reqwest {
            Some(reqwest) => {
                let client = reqwest.build(&self.client, &guard, &self.timeouts)?;
                Clients::with_default(self.client, guard, client)
            }
            None => Clients::new(self.client, guard)?,
        };
        #[cfg(not(feature = "reqwest"))]
        let clients = Clients::new(self.client, guard)?;
        Ok(Webhooks(Arc::new(Inner {
            clients,
            destinations: self
                .destinations
                .unwrap_or_else(|| Arc::new(UrlDestinations::default())),
            signers: self.signers,
            classifier: self.classifier,
            observer: self.observer,
            unsigned: self.unsigned,
            encoding: self.encoding,
            heed_header: self.heed_header,
            timeouts: self.timeouts,
            user_agent,
            max_request: self.max_request,
            capture: self.capture,
            recheck: self.recheck,
            clock: self.clock,
        })))
    }
}

impl fmt::Debug for WebhooksBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhooksBuilder")
            .field("signers", &self.signers.len())
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "reqwest")]
enum Reqwest {
    Builder(Box<reqwest::ClientBuilder>),
    Client(reqwest::Client),
}

#[cfg(feature = "reqwest")]
impl Reqwest {
    fn build(
        self,
        settings: &ClientSettings,
        guard: &Arc<AddressGuard>,
        timeouts: &Timeouts,
    ) -> Result<PooledClient, Error> {
        let client = match self {
            Self::Client(client) => client,
            Self::Builder(builder) => {
                let resolver = GuardedResolver {
                    resolver: settings.resolver.clone(),
                    guard: guard.clone(),
                };
                build_reqwest(*builder, resolver, timeouts)?
            }
        };
        Ok(PooledClient::Reqwest(client))
    }
}
