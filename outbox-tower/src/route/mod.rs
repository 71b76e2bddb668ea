//! Another service for each event type, or for each value of any key.

mod future;
mod service;

pub use future::ResponseFuture;
pub use service::Route;
