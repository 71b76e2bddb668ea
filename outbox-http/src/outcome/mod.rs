//! What an answer means.

mod classify;
mod retry_after;

pub use classify::{Answer, Classifier, Lenient, Strict, Verdict};
pub use retry_after::retry_after;
