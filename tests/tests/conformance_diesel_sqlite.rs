//! The conformance suite over `outbox_diesel::SqliteStore`.
#![expect(
    clippy::unwrap_used,
    reason = "a failure of the harness fails the test"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use diesel::SqliteConnection;
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use outbox_core::conformance::{Capabilities, Harness, ReceivingHarness};
use outbox_core::{
    Accepted, Enqueue, Enqueued, Error, Inbox, InboxMessage, ManualClock, NewEvent, Spawn,
    TokioSpawn,
};
use outbox_diesel::SqliteStore;
use tempfile::TempDir;

type Connection = SyncConnectionWrapper<SqliteConnection>;

struct File {
    pool: Pool<Connection>,
    store: SqliteStore,
    clock: ManualClock,
    folder: TempDir,
}

impl File {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let pool = pool(folder.path());
        let store = store(&pool, &clock);
        store.migrate().await.unwrap();
        Self {
            pool,
            store,
            clock,
            folder,
        }
    }
}

fn pool(folder: &Path) -> Pool<Connection> {
    let mut config = ManagerConfig::default();
    config.custom_setup = Box::new(|path| {
        let path = path.to_owned();
        Box::pin(async move {
            let mut conn = SqliteStore::open(path).await?;
            // What a loss of power would take is no part of the suite.
            conn.spawn_blocking(|conn| conn.batch_execute("PRAGMA synchronous = OFF"))
                .await
                .unwrap();
            Ok(conn)
        })
    });
    let path = folder.join("outbox.db").display().to_string();
    let manager = AsyncDieselConnectionManager::new_with_config(path, config);
    Pool::builder(manager).max_size(10).build().unwrap()
}

fn store(pool: &Pool<Connection>, clock: &ManualClock) -> SqliteStore {
    SqliteStore::new(pool.clone()).unwrap().clock(clock.clone())
}

/// An open transaction; a dropped one takes its connection along.
struct Tx(Option<Object<Connection>>);

impl Tx {
    fn conn(&mut self) -> &mut Connection {
        self.0.as_mut().unwrap()
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

impl Harness for File {
    type Store = SqliteStore;
    type Tx = Tx;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn open(&self) -> SqliteStore {
        store(&pool(self.folder.path()), &self.clock)
    }

    async fn begin(&self) -> Tx {
        let mut tx = Tx(Some(self.pool.get().await.unwrap()));
        tx.conn()
            .spawn_blocking(|conn| {
                AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN IMMEDIATE")
            })
            .await
            .unwrap();
        tx
    }

    async fn enqueue(&self, tx: &mut Tx, event: NewEvent) -> Result<Enqueued, Error> {
        self.store.enqueue(tx.conn(), event).await
    }

    async fn enqueue_all(
        &self,
        tx: &mut Tx,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.store.enqueue_all(tx.conn(), events).await
    }

    async fn commit(&self, mut tx: Tx) {
        tx.conn()
            .spawn_blocking(AnsiTransactionManager::commit_transaction)
            .await
            .unwrap();
        drop(tx.0.take());
    }

    async fn rollback(&self, mut tx: Tx) {
        tx.conn()
            .spawn_blocking(AnsiTransactionManager::rollback_transaction)
            .await
            .unwrap();
        drop(tx.0.take());
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn damage(&self, seq: i64) -> bool {
        let mut conn = self.pool.get().await.unwrap();
        let sql = format!("UPDATE outbox_events SET headers = '[1]' WHERE seq = {seq}");
        conn.spawn_blocking(move |conn| conn.batch_execute(&sql))
            .await
            .unwrap();
        true
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.concurrent_transactions = false;
        capabilities
    }

    fn spawner(&self) -> Option<Arc<dyn Spawn>> {
        Some(Arc::new(TokioSpawn))
    }
}

impl ReceivingHarness for File {
    async fn accept(&self, tx: &mut Tx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.store.accept(tx.conn(), message).await
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], File::new);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], File::new);
