//! What an answer means.

mod classify;
mod delivery_header;
mod retry_after;

pub use classify::{Answer, Classifier, Lenient, Strict, Verdict};
pub(crate) use delivery_header::DeliveryHeader;
pub use retry_after::retry_after;
