//! MySQL 8 or MariaDB 10.6, or newer.

mod calls;
mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod idempotency;
mod locks;
mod maintenance;
mod schema;
mod session;
mod settle;
mod transaction;

use std::fmt;
use std::sync::Arc;

use outbox_core::sql::TableNames;
use outbox_core::sql::mysql::{ClaimState, Statements};
use outbox_core::{Error, EventLimits, Retention};
use sqlx::MySqlPool;

use self::error::classify;
use self::session::Connection;
use self::transaction::Transaction;

/// An outbox in MySQL 8 or MariaDB 10.6, or newer. Clones share the pool and take turns at claims.
///
/// A call that changes rows is a short transaction at READ COMMITTED on one pooled connection, made
/// again where it met another one: a pool with one connection is enough, and no session state is
/// left on it. Where a call is dropped within its transaction, its connection is closed instead of
/// returned, and the server rolls back.
///
/// The server's binary log, if any, must be `ROW` or `MIXED`. An event must fit into
/// `max_allowed_packet`.
///
/// ```no_run
/// # async fn example(pool: sqlx::MySqlPool) -> Result<(), Box<dyn std::error::Error>> {
/// use outbox_core::{Enqueue, NewEvent};
/// use outbox_sqlx::MySqlStore;
///
/// let store = MySqlStore::new(pool.clone());
/// store.migrate().await?;
///
/// let mut tx = pool.begin().await?;
/// store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("https://ci.example/hooks")).await?;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MySqlStore {
    pool: MySqlPool,
    names: TableNames,
    limits: EventLimits,
    retention: Retention,
    sql: Arc<Statements>,
    turns: Arc<ClaimState>,
}

impl MySqlStore {
    /// A store in the tables `outbox_*` of the connection's database.
    #[must_use]
    pub fn new(pool: MySqlPool) -> Self {
        let names = TableNames::default();
        Self {
            sql: Arc::new(Statements::new(&names)),
            turns: Arc::default(),
            limits: EventLimits::default(),
            retention: Retention::default(),
            pool,
            names,
        }
    }

    /// Other tables; a schema is a database of the same server. Default: the prefix `outbox`, in the
    /// connection's database.
    #[must_use]
    pub fn tables(mut self, names: TableNames) -> Self {
        self.sql = Arc::new(Statements::new(&names));
        self.turns = Arc::default();
        self.names = names;
        self
    }

    /// What becomes of published events. Default: they are kept until they are pruned.
    #[must_use]
    pub const fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// What an event may hold.
    #[must_use]
    pub const fn limits(mut self, limits: EventLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The pool.
    #[must_use]
    pub const fn pool(&self) -> &MySqlPool {
        &self.pool
    }

    /// Begins the transaction of a call.
    async fn begin(&self, operation: &'static str) -> Result<Transaction, Error> {
        Transaction::begin(&self.pool, operation).await
    }

    /// For a call of one statement.
    async fn connection(
        &self,
        operation: &'static str,
    ) -> Result<Connection<sqlx::pool::PoolConnection<sqlx::MySql>>, Error> {
        let conn = self.pool.acquire().await;
        let conn = conn.map_err(|error| classify(operation, error))?;
        Ok(Connection::new(conn, operation))
    }
}

impl fmt::Debug for MySqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlStore")
            .field("names", &self.names)
            .field("limits", &self.limits)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
