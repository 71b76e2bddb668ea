//! The conformance suite over `MySqlStore` of outbox-sqlx, on MariaDB.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::conformance::{Harness, ReceivingHarness};
use outbox_core::{
    Accepted, Enqueue, Enqueued, Error, Inbox, InboxMessage, NewEvent, Spawn, TokioSpawn,
};
use outbox_sqlx::MySqlStore;
use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, MySql, MySqlPool, Transaction};
use tests::MariaServer;

struct Maria {
    url: String,
    store: MySqlStore,
}

impl Maria {
    async fn new() -> Self {
        let url = MariaServer::shared().create_database();
        let store = MySqlStore::new(pool(&url).await);
        store.migrate().await.expect("migrated");
        Self { url, store }
    }
}

async fn pool(url: &str) -> MySqlPool {
    let options = MySqlPoolOptions::new().max_connections(10);
    options.connect(url).await.expect("connected")
}

/// Every instant that decides something; of due rows, `place` is one too.
const INSTANTS: [(&str, &str); 10] = [
    (
        "events",
        "place = IF(shape = 1, place - :by, place), available_at = available_at - :by, \
         created_at = created_at - :by, expires_at = expires_at - :by, \
         lease_until = lease_until - :by",
    ),
    (
        "published",
        "created_at = created_at - :by, published_at = published_at - :by",
    ),
    (
        "dead",
        "created_at = created_at - :by, expires_at = expires_at - :by, dead_at = dead_at - :by",
    ),
    ("discards", "discarded_at = discarded_at - :by"),
    ("dedup", "created_at = created_at - :by"),
    ("destinations", "hold_until = hold_until - :by"),
    ("blocked", "since = since - :by"),
    (
        "idempotency",
        "lease_until = lease_until - :by, expires_at = expires_at - :by",
    ),
    ("inbox", "expires_at = expires_at - :by"),
    ("locks", "held_until = held_until - :by"),
];

impl Harness for Maria {
    type Store = MySqlStore;
    type Tx = Transaction<'static, MySql>;

    fn store(&self) -> &MySqlStore {
        &self.store
    }

    async fn open(&self) -> MySqlStore {
        MySqlStore::new(pool(&self.url).await)
    }

    async fn begin(&self) -> Self::Tx {
        self.store.pool().begin().await.expect("begun")
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
        let micros = by.as_micros().to_string();
        let mut tx = self.begin().await;
        for (table, sets) in INSTANTS {
            let sets = sets.replace(":by", &micros);
            sqlx::query(AssertSqlSafe(format!("UPDATE outbox_{table} SET {sets}")))
                .execute(&mut *tx)
                .await
                .expect("moved");
        }
        self.commit(tx).await;
    }

    async fn damage(&self, seq: i64) -> bool {
        sqlx::query("UPDATE outbox_events SET headers = '[1]' WHERE seq = ?")
            .bind(seq)
            .execute(self.store.pool())
            .await
            .expect("damaged");
        true
    }

    fn spawner(&self) -> Option<Arc<dyn Spawn>> {
        Some(Arc::new(TokioSpawn))
    }
}

impl ReceivingHarness for Maria {
    async fn accept(&self, tx: &mut Self::Tx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.store.accept(tx, message).await
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Maria::new);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Maria::new);
