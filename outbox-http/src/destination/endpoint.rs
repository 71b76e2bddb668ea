//! Where and how events of one destination are delivered.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use http::HeaderMap;
use outbox_core::{Error, Signer};
use tokio::sync::Semaphore;

use crate::client::{Identity, Timeouts};
use crate::encoding::Encoding;
use crate::guard::{AddressGuard, Target};

/// Where and how events of one destination are delivered. What is not set is the transport's.
///
/// ```
/// use outbox_http::{Encoding, Endpoint, Stripe};
///
/// let endpoint = Endpoint::new("https://ci.example/hooks")?
///     .signer(Stripe::new("whsec_correct_horse_battery")?)
///     .header("authorization", "Bearer 4f1c")?
///     .encoding(Encoding::cloud_events_structured("/git")?);
/// # let _ = endpoint;
/// # Ok::<(), outbox_http::outbox_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) target: Target,
    pub(crate) signers: Option<Vec<Arc<dyn Signer>>>,
    pub(crate) headers: HeaderMap,
    pub(crate) timeouts: Option<Timeouts>,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) identity: Option<Identity>,
    pub(crate) guard: Option<Arc<AddressGuard>>,
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) max_request: Option<usize>,
}

impl Endpoint {
    /// An endpoint at this URL, all settings the transport's.
    ///
    /// # Errors
    ///
    /// As [`Target::new`].
    pub fn new(url: &str) -> Result<Self, Error> {
        Ok(Self {
            target: Target::new(url)?,
            signers: None,
            headers: HeaderMap::new(),
            timeouts: None,
            encoding: None,
            identity: None,
            guard: None,
            slots: None,
            max_request: None,
        })
    }

    /// Signs with this, and with others that are added, instead of the transport's signers.
    #[must_use]
    pub fn signer(mut self, signer: impl Signer + 'static) -> Self {
        self.signers.get_or_insert_default().push(Arc::new(signer));
        self
    }

    /// Sends without a signature, whatever signers the transport has.
    #[must_use]
    pub fn unsigned(mut self) -> Self {
        self.signers = Some(Vec::new());
        self
    }

    /// A header of every request, credentials for example. It replaces the event's own of that name.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): no header name, a value with
    /// control characters, or a name that belongs to the connection or the framing.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let (name, mut value) = crate::header::parse(name, value)
            .map_err(|problem| Error::invalid_config("header", problem))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Deadlines instead of the transport's; all but the one to connect, which belongs to the pool
    /// that endpoints share.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig), naming the deadline: zero, or more
    /// than an hour.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Result<Self, Error> {
        timeouts.check()?;
        self.timeouts = Some(timeouts);
        Ok(self)
    }

    /// What the body looks like, instead of the transport's encoding.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// The client certificate for mutual TLS. Such an endpoint is delivered to over `https` or not at
    /// all, on connections that no other identity shares.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Where deliveries may go, instead of the transport's guard.
    #[must_use]
    pub fn guard(mut self, guard: AddressGuard) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// The most deliveries at a time by this process. One more counts as not attempted, uncharged,
    /// and is due again a second later; the relay's own limit per destination claims less to begin
    /// with and is the better tool. Default: no limit.
    #[must_use]
    pub fn max_in_flight(mut self, limit: NonZeroU32) -> Self {
        let slots = usize::try_from(limit.get()).unwrap_or(usize::MAX);
        self.slots = Some(Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))));
        self
    }

    /// The largest request body in bytes, instead of the transport's.
    #[must_use]
    pub const fn max_request(mut self, bytes: usize) -> Self {
        self.max_request = Some(bytes);
        self
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("target", &self.target)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("timeouts", &self.timeouts)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
