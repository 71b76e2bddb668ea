//! The conformance suite over `outbox_diesel::PgStore`.
#![expect(
    clippy::unwrap_used,
    reason = "a failure of the harness fails the test"
)]

use std::sync::Arc;
use std::time::Duration;

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection, TransactionManager};
use outbox_core::conformance::{Harness, ReceivingHarness};
use outbox_core::{
    Accepted, Enqueue, Enqueued, Error, Inbox, InboxMessage, NewEvent, Spawn, TokioSpawn,
};
use outbox_diesel::PgStore;
use tests::{PgServer, pg_advance};

type Transactions = <AsyncPgConnection as AsyncConnection>::TransactionManager;

struct Pg {
    pool: Pool<AsyncPgConnection>,
    store: PgStore,
}

impl Pg {
    async fn new() -> Self {
        let url = PgServer::shared().create_database();
        let manager = AsyncDieselConnectionManager::new(url);
        let pool = Pool::builder(manager).max_size(12).build().unwrap();
        let store = PgStore::new(pool.clone());
        store.migrate().await.unwrap();
        Self { pool, store }
    }

    async fn run(&self, sql: &str) {
        let mut conn = self.pool.get().await.unwrap();
        conn.batch_execute(sql).await.unwrap();
    }
}

/// An open transaction; a dropped one takes its connection along.
struct Tx(Option<Object<AsyncPgConnection>>);

impl Tx {
    fn conn(&mut self) -> &mut AsyncPgConnection {
        self.0.as_mut().unwrap()
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

impl Harness for Pg {
    type Store = PgStore;
    type Tx = Tx;

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn open(&self) -> PgStore {
        PgStore::new(self.pool.clone())
    }

    async fn begin(&self) -> Tx {
        let mut tx = Tx(Some(self.pool.get().await.unwrap()));
        Transactions::begin_transaction(tx.conn()).await.unwrap();
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
        Transactions::commit_transaction(tx.conn()).await.unwrap();
        drop(tx.0.take());
    }

    async fn rollback(&self, mut tx: Tx) {
        Transactions::rollback_transaction(tx.conn()).await.unwrap();
        drop(tx.0.take());
    }

    async fn advance(&self, by: Duration) {
        self.run(&pg_advance(by)).await;
    }

    async fn damage(&self, seq: i64) -> bool {
        let sql = format!("UPDATE outbox_events SET headers = 'no JSON' WHERE seq = {seq}");
        self.run(&sql).await;
        true
    }

    fn spawner(&self) -> Option<Arc<dyn Spawn>> {
        Some(Arc::new(TokioSpawn))
    }
}

impl ReceivingHarness for Pg {
    async fn accept(&self, tx: &mut Tx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.store.accept(tx.conn(), message).await
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Pg::new);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Pg::new);
