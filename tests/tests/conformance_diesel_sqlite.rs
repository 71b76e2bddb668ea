//! The conformance suites over `SqliteStore` of outbox-diesel, with each of the pools.

use std::path::Path;
use std::time::Duration;

use diesel::SqliteConnection;
use diesel::connection::{AnsiTransactionManager, SimpleConnection};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, bb8, deadpool};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use outbox_core::ManualClock;
use outbox_core::conformance::Capabilities;
use outbox_diesel::SqliteStore;
use tempfile::TempDir;

use self::harness::{Subject, Suite};

#[path = "harness/diesel.rs"]
mod harness;

type Connection = SyncConnectionWrapper<SqliteConnection>;

/// The store has one connection; producers and other handles on the data have their own.
struct File {
    store: SqliteStore,
    clock: ManualClock,
    folder: TempDir,
    open: Open,
}

type Open = fn(&Path, u32) -> SqliteStore;

async fn fresh() -> Suite<File> {
    with(on_deadpool).await
}

async fn fresh_on_bb8() -> Suite<File> {
    with(on_bb8).await
}

async fn with(open: Open) -> Suite<File> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = ManualClock::new();
    let store = open(folder.path(), 1).clock(clock.clone());
    store.migrate().await.expect("migrated");
    Suite(File {
        store,
        clock,
        folder,
        open,
    })
}

fn on_deadpool(folder: &Path, connections: u32) -> SqliteStore {
    let pool = deadpool::Pool::builder(manager(folder)).max_size(connections as usize);
    SqliteStore::new(pool.build().expect("a pool")).expect("default tables")
}

fn on_bb8(folder: &Path, connections: u32) -> SqliteStore {
    let pool = bb8::Pool::builder().max_size(connections);
    SqliteStore::new(pool.build_unchecked(manager(folder))).expect("default tables")
}

fn manager(folder: &Path) -> AsyncDieselConnectionManager<Connection> {
    let mut config = ManagerConfig::default();
    config.custom_setup = Box::new(|path| Box::pin(connect(path.to_owned())));
    AsyncDieselConnectionManager::new_with_config(file(folder), config)
}

fn file(folder: &Path) -> String {
    folder.join("outbox.db").display().to_string()
}

async fn connect(path: String) -> diesel::ConnectionResult<Connection> {
    let mut conn = SqliteStore::open(path).await?;
    // What a loss of power would take is no part of the suite.
    conn.spawn_blocking(|conn| conn.batch_execute("PRAGMA synchronous = OFF"))
        .await
        .expect("set");
    Ok(conn)
}

impl Subject for File {
    type Connection = Connection;
    type Store = SqliteStore;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn open(&self) -> SqliteStore {
        (self.open)(self.folder.path(), 10).clock(self.clock.clone())
    }

    async fn connect(&self) -> Connection {
        let conn = connect(file(self.folder.path())).await;
        conn.expect("opened")
    }

    async fn begin(conn: &mut Connection) {
        let begun = conn.spawn_blocking(|conn| {
            AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN IMMEDIATE")
        });
        begun.await.expect("begun");
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

mod with_bb8 {
    use super::fresh_on_bb8 as fresh;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
    outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], fresh);
}
