#![doc = include_str!("../README.md")]

pub mod breaker;
pub mod concurrency;
pub mod deadline;
pub mod fallback;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "axum")]
pub mod ops;
#[cfg(feature = "rate")]
pub mod rate;
#[cfg(any(feature = "verify", feature = "idempotency"))]
pub mod receive;
pub mod route;
#[cfg(feature = "http")]
pub mod sign;
pub mod trace;

mod admission;
mod attempt;
mod call;
mod classify;
mod clock;
mod forward;
mod key;
mod keyed_map;
mod service_transport;
mod transport_service;

pub use outbox_core;

pub use admission::{Admitted, Pass};
pub use attempt::Attempt;
pub use call::NotReady;
pub use classify::{classify, kind_of};
pub use forward::{Forwarded, Forwarder};
pub use key::{ByDestination, ByEventType, KeyOf};
pub use service_transport::{SerializedTransport, ServiceTransport};
pub use transport_service::TransportService;
