//! Stops sending to a key that keeps failing, and finds out when it works again.
//!
//! A circuit is *closed* (calls pass, their outcomes are counted), *open* (calls fail as not
//! attempted, with the time until the next try) or *half-open* (a few probes pass; their outcomes
//! decide). An open circuit fails in `call`, not in `poll_ready`: one bad destination holds up no
//! other, and kills no `Buffer`.
//!
//! ```
//! use std::time::Duration;
//! use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
//!
//! let breaker = Breaker::default().consecutive(5).open_for(Duration::from_secs(10));
//! let layer = CircuitBreakerLayer::per_destination(breaker);
//! let circuits = layer.circuits(); // to look at, and to reset
//! assert!(circuits.list().is_empty());
//! ```
//!
//! A probe that is dropped frees its place. A call that is dropped after it took at least
//! [`slow`](Breaker::slow) counts as failed: that is how a destination that hangs until the relay's
//! time-out looks from here.

mod circuit;
mod config;
mod error;
mod judge;
mod layer;
mod registry;

pub use circuit::CircuitState;
pub use config::Breaker;
pub use error::CircuitOpen;
#[cfg(feature = "http")]
pub use judge::ByStatus;
pub use judge::{ByError, Judge, Verdict};
pub use layer::{CircuitBreaker, CircuitBreakerLayer};
pub use registry::{CircuitStatus, Circuits, Judged};
