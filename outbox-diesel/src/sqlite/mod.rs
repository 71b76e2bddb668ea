//! SQLite 3.38 or newer.

mod call;
mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod idempotency;
mod locks;
mod maintenance;
mod schema;

use std::fmt;
use std::sync::Arc;

use diesel::connection::SimpleConnection;
use diesel::{QueryResult, SqliteConnection};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use outbox_core::sql::TableNames;
use outbox_core::sql::sqlite::{AWAIT_WRITER, Statements, Turn, WRITE_AHEAD, WRITE_AHEAD_TRIES};
use outbox_core::{Clock, Error, EventLimits, Retention, SystemClock};

use self::error::is_busy;
use crate::pool::{Connections, Pool};

/// The call that makes the tables, as errors name it.
const MIGRATE: &str = "SqliteStore::migrate";

/// An outbox in a SQLite database. Clones share the pool.
///
/// Every call is one or a few statements in autocommit mode on one pooled connection: a pool with
/// one connection is enough. Each is made by a task of its own, on tokio's threads for blocking
/// work, and goes on where its caller is dropped. SQLite has one writer at a time, so leases should
/// be longer than three busy time-outs (5 s each with [`set_up`](Self::set_up)).
///
/// A *producer* who drops a future of diesel-async's own blocks until the statement has ended, and
/// on a current-thread runtime panics: that is how `SyncConnectionWrapper` is made.
///
/// ```
/// # #[cfg(feature = "deadpool")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db").display().to_string();
/// use diesel::{Connection, SqliteConnection};
/// use diesel_async::pooled_connection::deadpool::Pool;
/// use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
/// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use outbox_core::NewEvent;
/// use outbox_diesel::SqliteStore;
///
/// let mut config = ManagerConfig::default();
/// config.custom_setup = Box::new(|path| Box::pin(SqliteStore::open(path.to_owned())));
/// let manager = AsyncDieselConnectionManager::<SyncConnectionWrapper<SqliteConnection>>::
///     new_with_config(path, config);
/// let pool = Pool::builder(manager).build()?;
/// let store = SqliteStore::new(pool.clone())?;
/// store.migrate().await?;
///
/// let outbox = store.clone();
/// pool.get().await?.spawn_blocking(move |conn| {
///     Ok(conn.immediate_transaction(|conn| {
///         outbox.enqueue_sync(conn, &NewEvent::bytes("T", "x").to("https://ci.example/hooks"))?;
///         Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
///     }))
/// }).await?.map_err(|problem| problem.to_string())?;
/// # Ok(()) }
/// # #[cfg(not(feature = "deadpool"))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    pool: Pool<SyncConnectionWrapper<SqliteConnection>>,
    names: TableNames,
    limits: EventLimits,
    retention: Retention,
    clock: Arc<dyn Clock>,
    sql: Arc<Statements>,
    turn: Arc<Turn>,
}

impl SqliteStore {
    /// A store in the tables `outbox_*` of the database behind this pool. Let the pool open its
    /// connections with [`open`](Self::open), or [`set_up`](Self::set_up) each yourself.
    ///
    /// # Errors
    ///
    /// None today; as [`tables`](Self::tables).
    pub fn new(
        pool: impl Connections<SyncConnectionWrapper<SqliteConnection>>,
    ) -> Result<Self, Error> {
        Self::with_pool(Pool::new(pool))
    }

    /// The same without a pool, for producers whose connections are their own: it enqueues, and
    /// every other call is [`Unsupported`](outbox_core::ErrorKind::Unsupported).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn enqueue_only() -> Result<Self, Error> {
        Self::with_pool(Pool::none())
    }

    fn with_pool(pool: Pool<SyncConnectionWrapper<SqliteConnection>>) -> Result<Self, Error> {
        let names = TableNames::default();
        Ok(Self {
            pool,
            sql: Statements::new(&names)?,
            names,
            limits: EventLimits::default(),
            retention: Retention::default(),
            clock: Arc::new(SystemClock::new()),
            turn: Arc::default(),
        })
    }

    /// Opens (and, where there is none, creates) the database file `path` and
    /// [sets it up](Self::set_up): for a pool manager's `custom_setup`.
    ///
    /// # Errors
    ///
    /// As [`AsyncConnection::establish`](diesel_async::AsyncConnection::establish).
    pub async fn open(
        path: String,
    ) -> diesel::ConnectionResult<SyncConnectionWrapper<SqliteConnection>> {
        use diesel_async::AsyncConnection;
        let mut conn = SyncConnectionWrapper::establish(&path).await?;
        conn.spawn_blocking(Self::set_up)
            .await
            .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
        Ok(conn)
    }

    /// Sets up a connection as this store likes it: a write-ahead log, so that readers don't stop
    /// the writer; `synchronous = FULL`, so that a commit survives a loss of power; and a busy
    /// time-out of five seconds (diesel's own is none).
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub fn set_up(conn: &mut SqliteConnection) -> QueryResult<()> {
        conn.batch_execute("PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL")?;
        // Others may be about to do the same with a new file.
        for _ in 1..WRITE_AHEAD_TRIES {
            match conn.batch_execute(WRITE_AHEAD) {
                Err(error) if is_busy(&error) => conn.batch_execute(AWAIT_WRITER)?,
                done => return done,
            }
        }
        conn.batch_execute(WRITE_AHEAD)
    }

    /// Other tables. Default: the prefix `outbox`.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig) where a schema is set: SQLite has
    /// none.
    pub fn tables(mut self, names: TableNames) -> Result<Self, Error> {
        self.sql = Statements::new(&names)?;
        self.names = names;
        Ok(self)
    }

    /// What becomes of published events. Default: they are kept until they are pruned.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// What an event may hold.
    #[must_use]
    pub fn limits(mut self, limits: EventLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The clock that decides what is due: SQLite has none of its own. All processes on one database
    /// must agree on it. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("names", &self.names)
            .field("limits", &self.limits)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
