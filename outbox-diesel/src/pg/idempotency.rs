//! Idempotency keys and inbox ids.

use diesel::pg::Pg;

use super::PgStore;

crate::idempotency::idempotency! {
    /// Through any asynchronous connection to PostgreSQL, pooled ones included.
    PgStore, Pg
}
