//! Building the transport.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use outbox_core::{Error, Signer};

use super::{Inner, Webhooks};
use crate::client::{ClientSettings, PooledClient, Timeouts};
use crate::clock::WallClock;
use crate::destination::{Destinations, UrlDestinations};
use crate::guard::{AddressGuard, Resolve, SystemResolver};
use crate::outcome::{Classifier, Strict};

/// Configures [`Webhooks`].
#[must_use]
pub struct WebhooksBuilder {
    signers: Vec<Arc<dyn Signer>>,
    unsigned: bool,
    destinations: Option<Arc<dyn Destinations>>,
    classifier: Arc<dyn Classifier>,
    client: ClientSettings,
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
            client: ClientSettings::new(Arc::new(SystemResolver::default())),
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

    /// Sends without a signature, which receivers can't tell from anybody else's request.
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

    /// Where deliveries may go. Default: the public internet, ports 80 and 443.
    pub fn guard(mut self, guard: AddressGuard) -> Self {
        self.client.guard = Arc::new(guard);
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

    /// How many bytes of the body of a failed attempt's answer are kept for people. Default: 1 KiB.
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
    /// deadline of zero, a user agent that is no header value.
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
        let destinations = self
            .destinations
            .unwrap_or_else(|| Arc::new(UrlDestinations::default()));
        Ok(Webhooks(Arc::new(Inner {
            client: PooledClient::new(&self.client)?,
            destinations,
            signers: self.signers,
            classifier: self.classifier,
            guard: self.client.guard,
            timeouts: self.timeouts,
            user_agent,
            max_request: self.max_request,
            capture: self.capture,
            max_body: 64 << 10,
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
