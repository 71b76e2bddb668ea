//! The conformance suites over `SqliteStore` of outbox-sqlx.

use std::path::PathBuf;
use std::time::Duration;

use outbox_core::ManualClock;
use outbox_core::conformance::Capabilities;
use outbox_sqlx::SqliteStore;
use outbox_sqlx::sqlx::sqlite::SqliteSynchronous;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Sqlite, SqlitePool, Transaction};
use tempfile::TempDir;

use self::harness::{Subject, Suite};

#[path = "harness/sqlx.rs"]
mod harness;

struct File {
    store: SqliteStore,
    clock: ManualClock,
    folder: TempDir,
}

async fn fresh() -> Suite<File> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = ManualClock::new();
    let store = open(folder.path().join("outbox.db"), &clock).await;
    store.migrate().await.expect("migrated");
    Suite(File {
        store,
        clock,
        folder,
    })
}

async fn open(path: PathBuf, clock: &ManualClock) -> SqliteStore {
    // What a loss of power would take is no part of the suite.
    let options = SqliteStore::options(path).synchronous(SqliteSynchronous::Off);
    let pool = SqlitePool::connect_with(options).await.expect("opened");
    let store = SqliteStore::new(pool).expect("default tables");
    store.clock(clock.clone())
}

impl Subject for File {
    type Database = Sqlite;
    type Store = SqliteStore;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn open(&self) -> SqliteStore {
        open(self.folder.path().join("outbox.db"), &self.clock).await
    }

    async fn begin(&self) -> Transaction<'static, Sqlite> {
        self.store.begin_immediate().await.expect("begun")
    }

    async fn run(&self, statements: String) {
        let done = sqlx::raw_sql(AssertSqlSafe(statements)).execute(self.store.pool());
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
