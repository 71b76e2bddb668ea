//! Signs requests on their way out.
//!
//! The layer stands inside any retry, so that each attempt is signed with the time at which it is
//! made.

mod layer;

pub use layer::{Sign, SignLayer};
