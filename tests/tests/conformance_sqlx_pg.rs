//! The conformance suite over `PgStore` of outbox-sqlx.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::conformance::{Capabilities, Harness, ReceivingHarness};
use outbox_core::{
    Accepted, Enqueue, Enqueued, Error, Inbox, InboxMessage, NewEvent, Spawn, TokioSpawn,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool, Postgres, Transaction};
use tests::PgServer;

struct Pg {
    url: String,
    store: PgStore,
    in_transactions: bool,
}

impl Pg {
    async fn new() -> Self {
        Self::with_mode(false).await
    }

    /// As behind an old PgBouncer.
    async fn in_transactions() -> Self {
        Self::with_mode(true).await
    }

    async fn with_mode(in_transactions: bool) -> Self {
        let url = PgServer::shared().create_database();
        let store = PgStore::new(pool(&url).await).in_transactions(in_transactions);
        store.migrate().await.expect("migrated");
        Self {
            url,
            store,
            in_transactions,
        }
    }
}

async fn pool(url: &str) -> PgPool {
    let options = PgPoolOptions::new().max_connections(10);
    options.connect(url).await.expect("connected")
}

/// Every instant that decides something.
const INSTANTS: [(&str, &[&str]); 10] = [
    (
        "events",
        &["available_at", "created_at", "expires_at", "lease_until"],
    ),
    ("published", &["created_at", "published_at"]),
    ("dead", &["created_at", "expires_at", "dead_at"]),
    ("discards", &["discarded_at"]),
    ("dedup", &["created_at"]),
    ("destinations", &["hold_until"]),
    ("blocked", &["since"]),
    ("idempotency", &["lease_until", "expires_at"]),
    ("inbox", &["expires_at"]),
    ("locks", &["held_until"]),
];

impl Harness for Pg {
    type Store = PgStore;
    type Tx = Transaction<'static, Postgres>;

    fn store(&self) -> &PgStore {
        &self.store
    }

    async fn open(&self) -> PgStore {
        PgStore::new(pool(&self.url).await).in_transactions(self.in_transactions)
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
        let micros = by.as_micros();
        let mut tx = self.begin().await;
        for (table, columns) in INSTANTS {
            let sets: Vec<String> = columns
                .iter()
                .map(|column| format!("{column} = {column} - interval '{micros} microseconds'"))
                .collect();
            let text = format!("UPDATE outbox_{table} SET {}", sets.join(", "));
            sqlx::query(AssertSqlSafe(text))
                .execute(&mut *tx)
                .await
                .expect("moved");
        }
        self.commit(tx).await;
    }

    async fn damage(&self, seq: i64) -> bool {
        sqlx::query("UPDATE outbox_events SET headers = '[1]' WHERE seq = $1")
            .bind(seq)
            .execute(self.store.pool())
            .await
            .expect("damaged");
        true
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        if self.in_transactions {
            // The statements are the same; three show that nothing is left open.
            capabilities.histories = 3;
        }
        capabilities
    }

    fn spawner(&self) -> Option<Arc<dyn Spawn>> {
        Some(Arc::new(TokioSpawn))
    }
}

impl ReceivingHarness for Pg {
    async fn accept(&self, tx: &mut Self::Tx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.store.accept(tx, message).await
    }
}

outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Pg::new);
outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Pg::new);

mod in_transactions {
    use super::Pg;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Pg::in_transactions);
    outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread", worker_threads = 2)], Pg::in_transactions);
}
