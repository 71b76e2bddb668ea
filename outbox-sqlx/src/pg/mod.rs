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
mod row;
mod schema;
mod session;
mod settle;
mod wake;

pub use wake::PgWake;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outbox_core::sql::pg::Statements;
use outbox_core::sql::{ScanState, TableNames};
use outbox_core::{EventLimits, Retention};
use sqlx::PgPool;

/// An outbox in PostgreSQL. Clones share the pool and what claims learn from each other.
///
/// Every call is one or a few statements in autocommit mode on one pooled connection, none of which
/// leaves anything behind on it: a pool with one connection is enough, and a dropped future harms
/// nothing. `PgBouncer` in transaction mode serves from version 1.21 on, older ones
/// [with transactions](Self::in_transactions).
///
/// ```no_run
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use outbox_core::{Enqueue, NewEvent};
/// use outbox_sqlx::PgStore;
///
/// let store = PgStore::new(pool.clone());
/// store.migrate().await?;
///
/// let mut tx = pool.begin().await?;
/// store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("https://ci.example/hooks")).await?;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PgStore {
    pool: PgPool,
    names: TableNames,
    limits: EventLimits,
    retention: Retention,
    sql: Arc<Statements>,
    scan: Arc<Mutex<ScanState>>,
    in_transactions: bool,
}

impl PgStore {
    /// A store in the tables `outbox_*` of the connection's schema.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let (names, retention) = (TableNames::default(), Retention::default());
        Self {
            sql: Arc::new(Statements::new(&names, retention)),
            scan: Arc::default(),
            in_transactions: false,
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
    pub const fn limits(mut self, limits: EventLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes each call in a transaction of its own and prepares no statement: for `PgBouncer` before
    /// version 1.21 in transaction mode, where the next statement may meet another connection of the
    /// server, and for poolers like it. Two more round trips for each call. Default: false.
    ///
    /// Connect with `statement_cache_capacity(0)` too, so that the application's own statements on
    /// these connections are not kept.
    #[must_use]
    pub const fn in_transactions(mut self, yes: bool) -> Self {
        self.in_transactions = yes;
        self
    }

    fn rebuilt(mut self) -> Self {
        self.sql = Arc::new(Statements::new(&self.names, self.retention));
        self.scan = Arc::default();
        self
    }

    /// The pool.
    #[must_use]
    pub const fn pool(&self) -> &PgPool {
        &self.pool
    }

    fn scan(&self) -> MutexGuard<'_, ScanState> {
        self.scan.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
