//! Stores of a transactional outbox on [sqlx](https://docs.rs/sqlx): PostgreSQL and SQLite.
//!
//! One feature for each database; no other driver is compiled. sqlx's runtime and TLS are the
//! application's choice: by sqlx's own features, or by those of the same name here.

#[cfg(feature = "postgres")]
mod pg;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use outbox_core;
pub use sqlx;

#[cfg(feature = "postgres")]
pub use pg::PgStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

use std::sync::Arc;

use sqlx::AssertSqlSafe;
use sqlx::query::Query;

/// A statement of this library. Its text holds no value but table names, which were checked and
/// quoted when the store was built.
fn query<DB: sqlx::Database>(sql: &Arc<str>) -> Query<'_, DB, DB::Arguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
}
