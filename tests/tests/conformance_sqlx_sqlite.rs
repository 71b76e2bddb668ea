//! The conformance suites over `SqliteStore` of outbox-sqlx.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::conformance::Capabilities;
use outbox_core::{
    DeadLetters, Destinations, Enqueue, IdempotencyKeys, Inbox, Locks, Maintenance, ManualClock,
    OutboxStore,
};
use outbox_sqlx::SqliteStore;
use outbox_sqlx::sqlx::sqlite::{SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Sqlite, SqliteConnection, Transaction};
use tempfile::TempDir;

use self::harness::{Subject, Suite};

#[path = "harness/sqlx.rs"]
mod harness;

/// All that a store can do.
trait Whole:
    OutboxStore
    + DeadLetters
    + Maintenance
    + Destinations
    + IdempotencyKeys
    + Locks
    + Enqueue<SqliteConnection>
    + Inbox<SqliteConnection>
    + 'static
{
}

impl Whole for Box<&'static SqliteStore> {}

/// The store has one connection; producers and other handles on the data have more.
struct File<S> {
    store: S,
    producers: SqliteStore,
    clock: ManualClock,
    folder: TempDir,
    as_liked: bool,
    wrap: fn(SqliteStore) -> S,
}

async fn fresh() -> Suite<File<SqliteStore>> {
    with(true, |store| store).await
}

/// In a file and on connections that are set otherwise than the store likes it, and behind each
/// pointer that is a store.
async fn fresh_and_odd() -> Suite<File<Arc<dyn Whole>>> {
    with(false, |store| -> Arc<dyn Whole> {
        let store: &'static SqliteStore = Box::leak(Box::new(store));
        Arc::new(Box::new(store))
    })
    .await
}

async fn with<S>(as_liked: bool, wrap: fn(SqliteStore) -> S) -> Suite<File<S>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = ManualClock::new();
    let path = folder.path().join("outbox.db");
    let store = open(&path, 1, &clock, as_liked).await;
    store.migrate().await.expect("migrated");
    Suite(File {
        store: wrap(store),
        producers: open(&path, 10, &clock, as_liked).await,
        clock,
        folder,
        as_liked,
        wrap,
    })
}

async fn open(path: &Path, connections: u32, clock: &ManualClock, as_liked: bool) -> SqliteStore {
    // What a loss of power would take is no part of the suite.
    let mut options = SqliteStore::options(path).synchronous(SqliteSynchronous::Off);
    if !as_liked {
        options = options
            .journal_mode(SqliteJournalMode::Delete)
            .foreign_keys(true)
            .pragma("encoding", "'UTF-16be'")
            .pragma("recursive_triggers", "on")
            .pragma("reverse_unordered_selects", "on")
            .pragma("trusted_schema", "off")
            .pragma("temp_store", "file");
    }
    let pool = SqlitePoolOptions::new().max_connections(connections);
    let pool = pool.connect_with(options).await.expect("opened");
    let store = SqliteStore::new(pool).expect("default tables");
    store.clock(clock.clone())
}

impl<S> Subject for File<S>
where
    S: OutboxStore + DeadLetters + Maintenance + Destinations + IdempotencyKeys + Locks + 'static,
    S: Enqueue<SqliteConnection> + Inbox<SqliteConnection>,
{
    type Database = Sqlite;
    type Store = S;

    fn store(&self) -> &S {
        &self.store
    }

    async fn open(&self) -> S {
        let path = self.folder.path().join("outbox.db");
        (self.wrap)(open(&path, 10, &self.clock, self.as_liked).await)
    }

    async fn begin(&self) -> Transaction<'static, Sqlite> {
        self.producers.begin_immediate().await.expect("begun")
    }

    async fn run(&self, statements: String) {
        let done = sqlx::raw_sql(AssertSqlSafe(statements)).execute(self.producers.pool());
        done.await.expect("done");
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.concurrent_transactions = false;
        capabilities
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);

mod set_otherwise {
    use super::fresh_and_odd as fresh;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
    outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
}
