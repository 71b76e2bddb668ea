//! Tower middleware around deliveries, and the receiving half.

pub mod breaker;
pub mod concurrency;
pub mod deadline;
#[cfg(feature = "rate")]
pub mod rate;

mod attempt;
mod call;
mod classify;
mod clock;
mod key;
mod keyed_map;
mod service_transport;
mod transport_service;

pub use outbox_core;

pub use attempt::Attempt;
pub use call::NotReady;
pub use classify::{classify, kind_of};
pub use key::{ByDestination, ByEventType, KeyOf};
pub use service_transport::{SerializedTransport, ServiceTransport};
pub use transport_service::TransportService;
