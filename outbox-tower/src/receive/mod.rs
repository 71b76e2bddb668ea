//! The receiving half: requests that are what they claim to be, and have their effects once.
//!
//! `VerifyLayer` refuses what is not signed, `IdempotencyLayer` answers repeats without running
//! the handler, and an [inbox](outbox_core::Inbox) records a message in the handler's own
//! transaction. The first two leave one window: a handler that committed and crashed before its
//! answer was kept runs again when the lease ends. The inbox closes it.
//!
//! All failures become answers (`application/problem+json`), so that the services keep the error
//! type of the inner one and fit into an axum router.

mod body;
mod fingerprint;
#[cfg(feature = "idempotency")]
pub mod idempotency;
#[cfg(all(feature = "axum", feature = "verify"))]
mod inbox;
mod payload;
mod problem;
#[cfg(feature = "verify")]
pub mod verify;

#[cfg(feature = "idempotency")]
pub use idempotency::IdempotencyLayer;
#[cfg(all(feature = "axum", feature = "verify"))]
pub use inbox::{NotReceived, Received};
pub use payload::Payload;
#[cfg(feature = "webhooks")]
pub use verify::WebhookVerifier;
#[cfg(feature = "verify")]
pub use verify::{Refused, Verified, VerifyLayer, VerifyRequest};
