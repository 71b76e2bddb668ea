//! Counts and times attempts.

mod future;
mod layer;

pub use future::ResponseFuture;
pub use layer::{Metrics, MetricsLayer};
