//! A second service for what the first could not take.

mod future;
mod layer;

pub use future::ResponseFuture;
pub use layer::{Fallback, FallbackLayer};
