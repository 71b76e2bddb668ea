//! Stores of a transactional outbox on [sqlx](https://docs.rs/sqlx): PostgreSQL,
//! MySQL/MariaDB and SQLite.
//!
//! One feature for each database; no other driver is compiled. sqlx's runtime and TLS are the
//! application's choice: by sqlx's own features, or by those of the same name here.
//!
#![cfg_attr(feature = "postgres", doc = "```no_run")]
#![cfg_attr(not(feature = "postgres"), doc = "```ignore")]
//! use outbox_core::{Backoff, Enqueue, NewEvent, Relay, TokioTimer};
//! use outbox_http::{StandardWebhooks, Webhooks};
//! use outbox_sqlx::PgStore;
//!
//! type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
//!
//! async fn accept_push(pool: &sqlx::PgPool, outbox: &PgStore, repo: i64, after: &str) -> Result<()> {
//!     let mut tx = pool.begin().await?;
//!     let update = sqlx::query("UPDATE repositories SET last_commit_sha = $1 WHERE id = $2");
//!     update.bind(after).bind(repo).execute(&mut *tx).await?;
//!     let event = NewEvent::json("RepositoryPushed", &serde_json::json!({ "after": after }))?;
//!     outbox.enqueue(&mut tx, event.key(repo).to("https://ci.example/hooks")).await?;
//!     Ok(tx.commit().await?) // the change and the event, or neither
//! }
//!
//! async fn relay(store: PgStore, secret: &str, stop: impl Future<Output = ()>) -> Result<()> {
//!     store.migrate().await?;
//!     let webhooks = Webhooks::builder().signer(StandardWebhooks::new(secret)?).build()?;
//!     let relay = Relay::builder(store, webhooks, TokioTimer).retry(Backoff::exponential()).build()?;
//!     let report = relay.run(stop).await; // finishes and settles what it has begun
//!     println!("{} delivered, {} to be tried again", report.published, report.retried);
//!     Ok(())
//! }
//! ```

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod destinations;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod error;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod idempotency;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod locks;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod pg;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod retry;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use outbox_core;
pub use sqlx;

#[cfg(feature = "mysql")]
pub use mysql::MySqlStore;
#[cfg(feature = "postgres")]
pub use pg::{PgStore, PgWake};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use {sqlx::AssertSqlSafe, sqlx::query::Query, std::sync::Arc};

/// A statement of this library. Its text holds no value but table names, which were checked and
/// quoted when the store was built.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
fn query<DB: sqlx::Database>(sql: &Arc<str>) -> Query<'_, DB, DB::Arguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
}
