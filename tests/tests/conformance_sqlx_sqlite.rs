//! The conformance suite over `SqliteStore` of outbox-sqlx.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::conformance::{Capabilities, Harness, ReceivingHarness};
use outbox_core::{
    Accepted, Enqueue, Enqueued, Error, Inbox, InboxMessage, ManualClock, NewEvent, Spawn,
    TokioSpawn,
};
use outbox_sqlx::SqliteStore;
use outbox_sqlx::sqlx::sqlite::SqliteSynchronous;
use outbox_sqlx::sqlx::{self, Sqlite, SqlitePool, Transaction};
use tempfile::TempDir;

struct File {
    store: SqliteStore,
    clock: ManualClock,
    folder: TempDir,
}

impl File {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = ManualClock::new();
        let store = open(folder.path().join("outbox.db"), &clock).await;
        store.migrate().await.expect("migrated");
        Self {
            store,
            clock,
            folder,
        }
    }
}

async fn open(path: PathBuf, clock: &ManualClock) -> SqliteStore {
    // What a loss of power would take is no part of the suite.
    let options = SqliteStore::options(path).synchronous(SqliteSynchronous::Off);
    let pool = SqlitePool::connect_with(options).await.expect("opened");
    let store = SqliteStore::new(pool).expect("default tables");
    store.clock(clock.clone())
}

impl Harness for File {
    type Store = SqliteStore;
    type Tx = Transaction<'static, Sqlite>;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    async fn open(&self) -> SqliteStore {
        open(self.folder.path().join("outbox.db"), &self.clock).await
    }

    async fn begin(&self) -> Self::Tx {
        self.store.begin_immediate().await.expect("begun")
    }

    async fn enqueue(&self, tx: &mut Self::Tx, event: NewEvent) -> Result<Enqueued, Error> {
        self.store.enqueue(tx, event).await
    }

    async fn enqueue_all(
        &self,
        tx: &mut Self::Tx,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.store.enqueue_all(tx, events).await
    }

    async fn commit(&self, tx: Self::Tx) {
        tx.commit().await.expect("committed");
    }

    async fn rollback(&self, tx: Self::Tx) {
        tx.rollback().await.expect("rolled back");
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn damage(&self, seq: i64) -> bool {
        let damaged = sqlx::query("UPDATE outbox_events SET headers = '[1]' WHERE seq = ?1")
            .bind(seq)
            .execute(self.store.pool())
            .await
            .expect("damaged");
        damaged.rows_affected() == 1
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
    async fn accept(&self, tx: &mut Self::Tx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.store.accept(tx, message).await
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], File::new);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], File::new);
