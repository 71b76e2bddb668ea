//! What the stores of outbox-diesel on PostgreSQL and MySQL promise beyond the conformance suite.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

mod cases;
mod mysql;
mod pg;
