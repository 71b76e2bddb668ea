//! One deadline over readiness, call and answer.
//!
//! tower's `Timeout` starts at the call: neither the wait for readiness inside it nor the body of
//! the answer is under it. This one covers both; `HttpDeadlineLayer` ends the body too.

#[cfg(feature = "http")]
mod body;
mod error;
mod future;
#[cfg(feature = "http")]
mod http;
mod layer;

#[cfg(feature = "http")]
pub use body::DeadlineBody;
pub use error::DeadlineExceeded;
pub use future::ResponseFuture;
#[cfg(feature = "http")]
pub use http::{HttpDeadline, HttpDeadlineLayer, HttpResponseFuture};
pub use layer::{Deadline, DeadlineLayer};
