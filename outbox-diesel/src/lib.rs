//! Stores of a transactional outbox on [diesel-async](https://docs.rs/diesel-async): PostgreSQL,
//! MySQL/MariaDB and SQLite.
//!
//! One feature for each database (`postgres`, `mysql`, `sqlite`) and each pool (`deadpool`, `bb8`);
//! no other driver is compiled, and none needs libpq or libmysqlclient. Other pools: implement
//! [`Connections`].
//!
//! Producers enqueue through any asynchronous diesel connection, pooled or not, and through plain
//! connections (`enqueue_sync` of each store). The tables and statements are those of `outbox-sqlx`:
//! what one adapter enqueues, the other relays.
//!
//! diesel-async's pools ask the server whether a connection lives each time they lend it. A relay
//! doesn't need that: a manager with `RecyclingMethod::Fast` saves a round trip for each call, and a
//! call on a dead connection fails as unavailable and is made again on another.

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod cells;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod destinations;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod detach;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod event_row;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod idempotency;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod locks;
mod pool;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod producers;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod read;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod retry;
#[cfg(feature = "postgres")]
mod rows;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod run;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod session;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod statement;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod value;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod pg;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use diesel;
pub use diesel_async;
pub use outbox_core;
#[cfg(feature = "postgres")]
pub use tokio_postgres;

#[cfg(feature = "mysql")]
pub use mysql::MySqlStore;
#[cfg(feature = "postgres")]
pub use pg::{PgStore, PgWake};
pub use pool::{Connections, Loan};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
