//! A private server, and what the parts share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outbox_core::{
    Delivery, DeliveryError, Receipt, Relay, RelayBuilder, Retention, TokioTimer, Transport,
    async_trait,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool};
use tests::PgServer;
use tokio::sync::oneshot;

pub(crate) struct Bench {
    pub(crate) url: String,
    pub(crate) pool: PgPool,
    _server: PgServer,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        let server = PgServer::start_with(&[
            "fsync=on",
            "synchronous_commit=on",
            "shared_buffers=1GB",
            "max_wal_size=8GB",
            "shared_preload_libraries=pg_stat_statements",
        ]);
        let url = server.create_database();
        let pool = pool(&url).await;
        store(&pool).migrate().await.expect("migrated");
        execute(&pool, "CREATE EXTENSION pg_stat_statements").await;
        Self {
            url,
            pool,
            _server: server,
        }
    }

    /// Puts a backlog for so many destinations into an empty table.
    pub(crate) async fn fill(&self, events: u32, destinations: u32) {
        let destination = format!("'https://ci-' || n % {destinations} || '.example/hooks'");
        self.insert(events, &destination).await;
    }

    /// The same for one destination.
    pub(crate) async fn fill_for(&self, events: u32, url: &str) {
        self.insert(events, &format!("'{url}'")).await;
    }

    /// Counts statements anew.
    pub(crate) async fn forget_statements(&self) {
        execute(&self.pool, "SELECT pg_stat_statements_reset()").await;
    }

    /// The calls on the outbox, their rows and their time on the server.
    pub(crate) async fn statements(&self) -> Vec<String> {
        let text = "SELECT format('%s calls, %s rows each, %s µs each: %s', sum(calls),
                round(sum(rows) / sum(calls), 1), round(sum(total_exec_time) * 1000 / sum(calls)),
                what)
            FROM pg_stat_statements, substring(query FROM '.*(outbox_[a-z_0-9]+)') AS what
            WHERE what IS NOT NULL AND query NOT LIKE '%INSERT%'
            GROUP BY what ORDER BY sum(total_exec_time) DESC LIMIT 4";
        let rows = sqlx::query_scalar(text).fetch_all(&self.pool).await;
        rows.expect("read")
    }

    async fn insert(&self, events: u32, destination: &str) {
        execute(&self.pool, "TRUNCATE outbox_events RESTART IDENTITY").await;
        let insert = format!(
            "INSERT INTO outbox_events (id, event_type, destination, payload)
             SELECT gen_random_uuid(), 'RepositoryPushed',
                 {destination},
                 decode(repeat('ab', 400), 'hex')
             FROM generate_series(1, {events}) n"
        );
        execute(&self.pool, &insert).await;
        execute(&self.pool, "VACUUM ANALYZE outbox_events").await;
        execute(&self.pool, "CHECKPOINT").await;
    }
}

pub(crate) async fn pool(url: &str) -> PgPool {
    let options = PgPoolOptions::new().max_connections(8);
    options.connect(url).await.expect("connected")
}

pub(crate) fn store(pool: &PgPool) -> PgStore {
    PgStore::new(pool.clone()).retention(Retention::DeleteAtOnce)
}

pub(crate) async fn execute(pool: &PgPool, text: &str) {
    sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
        .execute(pool)
        .await
        .expect("executed");
}

/// A relay that has room for whole batches.
pub(crate) fn relay(
    store: PgStore,
    transport: impl Transport + 'static,
    batch: u32,
) -> RelayBuilder {
    let batch = usize::try_from(batch).expect("small");
    Relay::builder(store, transport, TokioTimer)
        .concurrency(batch)
        .per_destination(batch)
        .batch_size(batch)
}

/// Does nothing, and says when it has done so for the last time.
pub(crate) struct Nothing {
    left: AtomicU32,
    done: Mutex<Option<oneshot::Sender<()>>>,
}

impl Nothing {
    pub(crate) fn until(events: u32) -> (Self, oneshot::Receiver<()>) {
        let (send, done) = oneshot::channel();
        let nothing = Self {
            left: AtomicU32::new(events),
            done: Mutex::new(Some(send)),
        };
        (nothing, done)
    }

    pub(crate) fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let done = self.done.lock().expect("not poisoned").take();
            let _ = done.map(|done| done.send(()));
        }
    }
}

#[async_trait]
impl Transport for Nothing {
    async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
        self.count();
        Ok(Receipt::new())
    }
}

/// Thousand events a second.
pub(crate) fn rate(events: u32, took: Duration) -> f64 {
    f64::from(events) / took.as_secs_f64() / 1e3
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
