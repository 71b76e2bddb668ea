//! From an event's destination to what is needed to deliver there.

mod endpoint;
mod fixed;
mod kept;
mod map;
mod record;
mod stored;
mod url;

use std::sync::Arc;

use async_trait::async_trait;
use outbox_core::Error;

pub use endpoint::Endpoint;
pub use fixed::StaticDestination;
pub use map::MapDestinations;
pub use record::{DestinationRecord, Scheme};
pub use stored::{DestinationStore, StoredDestinations};
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
    /// It can never be delivered to: its events are dead letters.
    Invalid {
        /// For operators. It quotes nothing that may be secret.
        reason: String,
    },
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
/// Rows of a table are looked up by [`StoredDestinations`], which keeps them for a while.
#[async_trait]
pub trait Destinations: Send + Sync {
    /// Looks one destination up.
    async fn resolve(&self, destination: &str) -> Result<Resolution, Error>;
}
