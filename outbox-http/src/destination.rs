//! From an event's destination to what is needed to deliver there.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue};
use outbox_core::{Error, Signer};

use crate::client::Timeouts;
use crate::guard::Target;

/// Where and how events of one destination are delivered. What is not set is the transport's.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) target: Target,
    pub(crate) signers: Option<Vec<Arc<dyn Signer>>>,
    pub(crate) headers: HeaderMap,
    pub(crate) timeouts: Option<Timeouts>,
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
        })
    }

    /// Signs with this, and with others that are added, instead of the transport's signers.
    #[must_use]
    pub fn signer(mut self, signer: impl Signer + 'static) -> Self {
        self.signers.get_or_insert_default().push(Arc::new(signer));
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
        self.headers.insert::<HeaderName>(name, value);
        Ok(self)
    }

    /// Deadlines instead of the transport's. The connection's deadline stays the transport's, whose
    /// pool all endpoints share.
    #[must_use]
    pub const fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = Some(timeouts);
        self
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self
            .headers
            .iter()
            .map(|(name, _): (_, &HeaderValue)| name)
            .collect();
        f.debug_struct("Endpoint")
            .field("target", &self.target)
            .field("headers", &names)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// What became of looking a destination up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Resolution {
    /// Deliver there.
    Endpoint(Arc<Endpoint>),
    /// Deliver nothing for now: events stay pending, uncharged, and are looked at again.
    Disabled {
        /// For operators.
        reason: String,
    },
    /// There is no such destination: its events are dead letters, to be replayed once there is.
    Unknown,
}

/// Looks destinations up.
///
/// # Contract
///
/// Called for every attempt: keep what is slow to get. The same `Arc` for the same settings lets the
/// transport reuse what it made of them.
///
/// # Errors
///
/// Any error means that nothing was attempted now: the event is tried again, uncharged.
///
/// # Cancel safety
///
/// Dropping the future changes nothing.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use outbox_core::{async_trait, Error};
/// use outbox_http::{Destinations, Endpoint, Resolution};
///
/// /// One receiver for everything.
/// struct Only(Arc<Endpoint>);
///
/// #[async_trait]
/// impl Destinations for Only {
///     async fn resolve(&self, _: &str) -> Result<Resolution, Error> {
///         Ok(Resolution::Endpoint(self.0.clone()))
///     }
/// }
/// # Endpoint::new("https://ci.example/hooks").map(|_| ())
/// # .unwrap();
/// ```
#[async_trait]
pub trait Destinations: Send + Sync {
    /// Looks one destination up.
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error>;
}

/// The default: an event's destination is the URL. What is no URL is unknown.
#[derive(Debug, Default)]
pub struct UrlDestinations(RwLock<HashMap<String, Arc<Endpoint>>>);

/// Parsed URLs that are kept; when there are more, all are parsed anew.
const KEPT: usize = 4_096;

#[async_trait]
impl Destinations for UrlDestinations {
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = known.get(destination) {
            return Ok(Resolution::Endpoint(endpoint.clone()));
        }
        drop(known);
        let Ok(endpoint) = Endpoint::new(destination) else {
            return Ok(Resolution::Unknown);
        };
        let endpoint = Arc::new(endpoint);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(destination.to_owned(), endpoint.clone());
        Ok(Resolution::Endpoint(endpoint))
    }
}
