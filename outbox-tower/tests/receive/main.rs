//! The receiving half, in front of axum and of plain services.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

#[cfg(feature = "webhooks")]
mod both_ends;
mod diesel;
mod idempotency;
mod inbox;
mod sqlite;
mod support;
mod verify;
