//! The HTTP client below the transport: connections, deadlines, failures.

mod body;
mod chain;
mod clients;
mod connect;
mod failure;
mod identity;
mod phase;
mod pool;
mod proxy;
#[cfg(feature = "reqwest")]
mod reqwest_client;
mod timeouts;
mod tls;
mod version;

pub use failure::{HttpFailure, HttpFailureKind};
pub use identity::Identity;
pub use timeouts::Timeouts;
pub use version::HttpVersion;

pub(crate) use body::ResponseBody;
pub(crate) use clients::Clients;
pub(crate) use connect::LookupFailed;
pub(crate) use phase::{PhaseBody, Progress};
pub(crate) use pool::{ClientSettings, PooledClient};
pub(crate) use proxy::EgressProxy;
#[cfg(feature = "reqwest")]
pub(crate) use reqwest_client::build as build_reqwest;
