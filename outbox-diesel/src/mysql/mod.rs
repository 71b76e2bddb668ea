//! MySQL 8 or MariaDB 10.6, or newer.

mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod idempotency;
mod locks;
mod maintenance;
mod schema;
mod settle;
mod transaction;

use std::fmt;
use std::sync::Arc;

use diesel_async::AsyncMysqlConnection;
use outbox_core::sql::TableNames;
use outbox_core::sql::mysql::{ClaimState, Statements};
use outbox_core::{EventLimits, Retention};

use crate::pool::{Connections, Pool};

/// The call that makes the tables, as errors name it.
const MIGRATE: &str = "MySqlStore::migrate";

/// An outbox in MySQL 8 or MariaDB 10.6, or newer. Clones share the pool and take turns at claims.
///
/// A call that changes rows is a short transaction at READ COMMITTED on one pooled connection, made
/// again where it met another one: a pool with one connection is enough, and no session state is
/// left on it. Each call is made by a task of its own and goes on where its caller is dropped, since
/// the driver below diesel-async loses its place on a connection whose call is broken off.
///
/// A *producer* who drops a future of diesel-async's own on such a connection, an enqueue included,
/// must close the connection. (Inside `transaction`, pools do: they take back none with an open one.)
///
/// The server's binary log, if any, must be `ROW` or `MIXED`. An event must fit into
/// `max_allowed_packet`. `max_error_count` must not be 0: diesel hands on no error numbers, so the
/// server is asked for them.
///
/// ```no_run
/// # #[cfg(feature = "deadpool")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use diesel_async::pooled_connection::AsyncDieselConnectionManager;
/// use diesel_async::pooled_connection::deadpool::Pool;
/// use diesel_async::{AsyncConnection, AsyncMysqlConnection};
/// use outbox_core::{Enqueue, Error, NewEvent};
/// use outbox_diesel::MySqlStore;
///
/// let manager = AsyncDieselConnectionManager::<AsyncMysqlConnection>::new("mysql://…");
/// let pool = Pool::builder(manager).build()?;
/// let store = MySqlStore::new(pool.clone());
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
pub struct MySqlStore {
    pool: Pool<AsyncMysqlConnection>,
    names: TableNames,
    limits: EventLimits,
    retention: Retention,
    sql: Arc<Statements>,
    turns: Arc<ClaimState>,
}

impl MySqlStore {
    /// A store in the tables `outbox_*` of the connection's database.
    #[must_use]
    pub fn new(pool: impl Connections<AsyncMysqlConnection>) -> Self {
        Self::with_pool(Pool::new(pool))
    }

    /// The same without a pool, for producers whose connections are their own: it enqueues, and
    /// every other call is [`Unsupported`](outbox_core::ErrorKind::Unsupported).
    #[must_use]
    pub fn enqueue_only() -> Self {
        Self::with_pool(Pool::none())
    }

    fn with_pool(pool: Pool<AsyncMysqlConnection>) -> Self {
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
