//! From an event's destination to what is needed to deliver there.

mod endpoint;
mod map;
mod url;

use std::sync::Arc;

use async_trait::async_trait;
use outbox_core::Error;

pub use endpoint::Endpoint;
pub use map::MapDestinations;
pub use url::UrlDestinations;

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

/// Looks destinations up: a table in memory, a database.
///
/// # Contract
///
/// Called for every attempt: keep what is slow to get. The same `Arc` for the same settings, so that
/// limits of an endpoint count all its deliveries.
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
/// Endpoints from a store, kept for as long as its cache says:
///
/// ```
/// use std::sync::Arc;
/// use outbox_http::outbox_core::{async_trait, Error};
/// use outbox_http::{Destinations, Endpoint, Resolution};
///
/// # struct Row { url: String, disabled: Option<String> }
/// # struct Cache;
/// # impl Cache {
/// #     async fn row(&self, _: &str) -> Result<Option<Row>, Error> { Ok(None) }
/// #     fn endpoint(&self, _: &Row) -> Result<Arc<Endpoint>, Error> { Endpoint::new("https://a.example/").map(Arc::new) }
/// # }
/// struct Subscriptions { cache: Cache }
///
/// #[async_trait]
/// impl Destinations for Subscriptions {
///     async fn resolve(&self, destination: &str) -> Result<Resolution, Error> {
///         Ok(match self.cache.row(destination).await? {
///             None => Resolution::Unknown,
///             Some(Row { disabled: Some(reason), .. }) => Resolution::Disabled { reason },
///             Some(row) => Resolution::Endpoint(self.cache.endpoint(&row)?),
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait Destinations: Send + Sync {
    /// Looks one destination up.
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error>;
}

#[async_trait]
impl<D: Destinations + ?Sized> Destinations for Arc<D> {
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error> {
        (**self).resolve(destination).await
    }
}
