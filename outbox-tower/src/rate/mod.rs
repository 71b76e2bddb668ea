//! At most so many attempts in a time, per key (GCRA, by the `governor` crate).
//!
//! ```
//! use std::num::NonZeroU32;
//! use outbox_tower::ByDestination;
//! use outbox_tower::rate::{Rate, RateLayer};
//!
//! let ten = NonZeroU32::new(10).unwrap();
//! let layer = RateLayer::new(Rate::per_second(ten).burst(NonZeroU32::MIN), ByDestination);
//! ```
//!
//! Unlike tower's `RateLimit`, clones share the limit, there is no window at whose edge twice the rate
//! passes, and a limited call fails as not attempted and says when to come back.

mod error;
mod gauge;
mod layer;

pub use error::RateLimited;
pub use gauge::Rate;
pub use layer::{RateLayer, RateLimit};
