//! A span for each attempt.

mod future;
mod layer;

pub use future::ResponseFuture;
pub use layer::{Trace, TraceLayer};
