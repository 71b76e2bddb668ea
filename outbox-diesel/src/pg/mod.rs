//! PostgreSQL 13 or newer.

mod calls;
mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod idempotency;
mod locks;
mod maintenance;
mod notify;
mod schema;
mod settle;
mod value;
mod wake;

pub use wake::PgWake;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use diesel_async::AsyncPgConnection;
use outbox_core::sql::pg::Statements;
use outbox_core::sql::{ScanState, Sql, TableNames};
use outbox_core::{Error, EventLimits, Retention};

use self::error::classify;
use self::value::Value;
use crate::pool::{Connections, Loan, Pool};
use crate::read::FromRow;
use crate::retry::retried;
use crate::run;
use crate::statement::Statement;

/// An outbox in PostgreSQL. Clones share the pool and what claims learn from each other.
///
/// Every call is one or a few statements in autocommit mode on one pooled connection, none of which
/// leaves anything behind on it: a pool with one connection is enough, and a dropped future harms
/// nothing. `PgBouncer` in transaction mode serves from version 1.21 on.
///
/// ```no_run
/// # #[cfg(feature = "deadpool")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use diesel_async::pooled_connection::AsyncDieselConnectionManager;
/// use diesel_async::pooled_connection::deadpool::Pool;
/// use diesel_async::{AsyncConnection, AsyncPgConnection};
/// use outbox_core::{Enqueue, Error, NewEvent};
/// use outbox_diesel::PgStore;
///
/// let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new("postgres://…");
/// let pool = Pool::builder(manager).build()?;
/// let store = PgStore::new(pool.clone());
/// store.migrate().await?;
///
/// let mut conn = pool.get().await?;
/// conn.transaction::<_, Box<dyn std::error::Error + Send + Sync>, _>(async |conn| {
///     store.enqueue(conn, NewEvent::bytes("T", "x").to("https://ci.example/hooks")).await?;
///     Ok(())
/// }).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PgStore {
    pool: Pool<AsyncPgConnection>,
    names: TableNames,
    limits: EventLimits,
    retention: Retention,
    sql: Arc<Statements>,
    scan: Arc<Mutex<ScanState>>,
}

impl PgStore {
    /// A store in the tables `outbox_*` of the connection's schema.
    #[must_use]
    pub fn new(pool: impl Connections<AsyncPgConnection>) -> Self {
        Self::with_pool(Pool::new(pool))
    }

    /// The same without a pool, for producers whose connections are their own: it enqueues, and
    /// every other call is [`Unsupported`](outbox_core::ErrorKind::Unsupported).
    #[must_use]
    pub fn enqueue_only() -> Self {
        Self::with_pool(Pool::none())
    }

    fn with_pool(pool: Pool<AsyncPgConnection>) -> Self {
        let (names, retention) = (TableNames::default(), Retention::default());
        Self {
            sql: Arc::new(Statements::new(&names, retention)),
            scan: Arc::default(),
            limits: EventLimits::default(),
            pool,
            names,
            retention,
        }
    }

    /// Other tables. Default: the prefix `outbox`, no schema of their own.
    #[must_use]
    pub fn tables(mut self, names: TableNames) -> Self {
        self.names = names;
        self.rebuilt()
    }

    /// What becomes of published events. Default: they are kept until they are pruned.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self.rebuilt()
    }

    /// What an event may hold.
    #[must_use]
    pub fn limits(mut self, limits: EventLimits) -> Self {
        self.limits = limits;
        self
    }

    fn rebuilt(mut self) -> Self {
        self.sql = Arc::new(Statements::new(&self.names, self.retention));
        self.scan = Arc::default();
        self
    }

    async fn connection(&self) -> Result<Loan<AsyncPgConnection>, Error> {
        self.pool.get().await
    }

    fn scan(&self) -> MutexGuard<'_, ScanState> {
        self.scan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows that a statement returns.
async fn rows<T: FromRow<diesel::pg::Pg> + Send>(
    conn: &mut AsyncPgConnection,
    operation: &'static str,
    sql: &Sql,
    values: Vec<Value<'_>>,
) -> Result<Vec<T>, Error> {
    run::rows(conn, Statement::new(sql, values))
        .await
        .map_err(|error| classify(operation, error))
}

/// The one row that a statement returns.
async fn row<T: FromRow<diesel::pg::Pg> + Send>(
    conn: &mut AsyncPgConnection,
    operation: &'static str,
    sql: &Sql,
    values: Vec<Value<'_>>,
) -> Result<T, Error> {
    let mut all = rows(conn, operation, sql, values).await?;
    all.pop()
        .ok_or_else(|| classify(operation, diesel::result::Error::NotFound))
}

/// Runs a statement; returns how many rows it changed.
async fn execute(
    conn: &mut AsyncPgConnection,
    operation: &'static str,
    sql: &Sql,
    values: Vec<Value<'_>>,
) -> Result<u64, Error> {
    run::execute(conn, Statement::new(sql, values))
        .await
        .map_err(|error| classify(operation, error))
}

impl fmt::Debug for PgStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgStore")
            .field("names", &self.names)
            .field("limits", &self.limits)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
