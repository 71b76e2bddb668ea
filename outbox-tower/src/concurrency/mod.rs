//! At most so many attempts at once, per key.
//!
//! Beside a relay, its own limit per destination is the better tool, since it claims no more than it
//! can deliver. This layer is for limits by another key, or for services that no relay calls.
//!
//! ```
//! use outbox_tower::concurrency::ConcurrencyLayer;
//! use outbox_tower::{ByDestination, ByEventType};
//!
//! let per_destination = ConcurrencyLayer::new(8, ByDestination);
//! let per_type = ConcurrencyLayer::new(2, ByEventType);
//! ```
//!
//! The slot is held until the answer is complete for services of `Delivery`. For services of
//! `http::Request` it is free at the head of the response: put the layer around the `Delivery`.

mod error;
mod layer;
mod slots;

pub use error::Saturated;
pub use layer::{Concurrency, ConcurrencyLayer};
pub use slots::Slot;
