//! Idempotency keys and inbox ids.

use diesel::sqlite::Sqlite;

use super::SqliteStore;

crate::idempotency::idempotency! {
    /// Through any asynchronous connection to SQLite, pooled ones included. Begin the transaction as a
    /// writer (`BEGIN IMMEDIATE`).
    SqliteStore, Sqlite
}
