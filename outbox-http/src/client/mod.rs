//! The HTTP client below the transport: one connection pool for one identity and policy.

mod chain;
mod connect;
mod failure;
mod phase;
mod pool;
mod timeouts;
mod tls;

pub use failure::{HttpFailure, HttpFailureKind};
pub use timeouts::Timeouts;

pub(crate) use connect::LookupFailed;
pub(crate) use failure::from_hyper;
pub(crate) use phase::{PhaseBody, Progress};
pub(crate) use pool::{ClientSettings, PooledClient};
