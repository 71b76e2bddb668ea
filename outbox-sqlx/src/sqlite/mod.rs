//! SQLite 3.38 or newer.

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

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::sql::TableNames;
use outbox_core::sql::sqlite::{AWAIT_WRITER, Statements, Turn, WRITE_AHEAD, WRITE_AHEAD_TRIES};
use outbox_core::{Clock, Error, ErrorKind, EventLimits, Retention, SystemClock};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _, Sqlite, SqlitePool, Transaction};

use self::error::classify;
use self::session::Connection;

/// The call that makes the tables, as errors name it.
const MIGRATE: &str = "SqliteStore::migrate";

/// How long a write waits for another one, with [`SqliteStore::options`].
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An outbox in a SQLite database. Clones share the pool.
///
/// Every call is one or a few statements in autocommit mode on one pooled connection: a pool with
/// one connection is enough, and a dropped future harms nothing. SQLite has one writer at a time, so
/// leases should be longer than three busy time-outs (5 s each by default).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use outbox_core::{Enqueue, NewEvent};
/// use outbox_sqlx::SqliteStore;
///
/// let store = SqliteStore::connect(path).await?;
/// store.migrate().await?;
///
/// let mut tx = store.begin_immediate().await?;
/// store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("https://ci.example/hooks")).await?;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    pool: SqlitePool,
    names: TableNames,
    limits: EventLimits,
    retention: Retention,
    clock: Arc<dyn Clock>,
    sql: Arc<Statements>,
    turn: Arc<Turn>,
}

impl SqliteStore {
    /// A store in the tables `outbox_*` of the database behind this pool. Connect with
    /// [`options`](Self::options), or set a write-ahead log and a busy time-out yourself.
    ///
    /// # Errors
    ///
    /// None today; as [`tables`](Self::tables).
    pub fn new(pool: SqlitePool) -> Result<Self, Error> {
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

    /// Opens (and, where there is none, creates) the database file `path` with
    /// [`options`](Self::options) and up to four connections.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](outbox_core::ErrorKind::Unavailable) where the file can't be opened.
    pub async fn connect(path: impl AsRef<Path>) -> Result<Self, Error> {
        write_ahead(&base_options(path.as_ref())).await?;
        let pool = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_with(Self::options(path))
            .await
            .map_err(|error| classify("connect", error))?;
        Self::new(pool)
    }

    /// How this store likes to be connected: a write-ahead log, so that readers don't stop the
    /// writer; `synchronous = FULL`, so that a commit survives a loss of power; and a busy time-out
    /// of five seconds.
    pub fn options(path: impl AsRef<Path>) -> SqliteConnectOptions {
        base_options(path.as_ref()).journal_mode(SqliteJournalMode::Wal)
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

    /// The clock that decides what is due: SQLite has none of its own. All processes on one database
    /// must agree on it. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The pool.
    #[must_use]
    pub const fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Begins a producer's transaction as a writer. A plain `BEGIN` that reads and then enqueues is
    /// refused at once, whatever the busy time-out, where another writer came between.
    ///
    /// # Errors
    ///
    /// [`Conflict`](outbox_core::ErrorKind::Conflict) where another writer stays longer than the
    /// busy time-out.
    pub async fn begin_immediate(&self) -> Result<Transaction<'static, Sqlite>, Error> {
        self.pool
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|error| classify("begin", error))
    }

    /// A pooled connection for a call.
    async fn connection(
        &self,
        operation: &'static str,
    ) -> Result<Connection<PoolConnection<Sqlite>>, Error> {
        let conn = self.pool.acquire().await;
        let conn = conn.map_err(|error| classify(operation, error))?;
        Ok(Connection::new(conn, operation))
    }
}

/// All but the write-ahead log.
fn base_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
}

/// Gives the file a write-ahead log, also where others are about to do the same.
async fn write_ahead(options: &SqliteConnectOptions) -> Result<(), Error> {
    let failed = |error| classify("connect", error);
    let mut conn = options.connect().await.map_err(failed)?;
    let mut tries = 1;
    while let Err(error) = sqlx::raw_sql(WRITE_AHEAD).execute(&mut conn).await {
        let error = failed(error);
        if error.kind() != ErrorKind::Conflict || tries == WRITE_AHEAD_TRIES {
            return Err(error);
        }
        tries += 1;
        let turn = sqlx::raw_sql(AWAIT_WRITER).execute(&mut conn).await;
        turn.map_err(failed)?;
    }
    conn.close().await.map_err(failed)
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
