//! Drains a backlog through the `PgStore`s of outbox-sqlx and outbox-diesel and through a hand-written
//! loop beside them, on one server.
//!
//! `cargo bench -p tests --bench drain -- [events]`
//!
//! Only the ratios within one run count. `DATABASE_URL` names a database to use instead of a private
//! server; its `outbox_*` tables are emptied.
#![expect(clippy::print_stdout, reason = "a program")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use outbox_core::{ClaimRequest, OutboxStore, Outcome, Retention, Settlement};
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::types::Uuid;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool, Row};
use tests::PgServer;

const LEASE: Duration = Duration::from_secs(30);

fn main() {
    let events = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(run(events.unwrap_or(200_000)));
}

async fn run(events: i64) {
    let server;
    let url = match std::env::var("DATABASE_URL") {
        Ok(url) => url,
        Err(_) => {
            server = PgServer::start_with(&[
                "fsync=on",
                "synchronous_commit=on",
                "shared_buffers=1GB",
                "max_wal_size=8GB",
            ]);
            server.create_database()
        }
    };
    let pool = PgPoolOptions::new()
        .max_connections(8)
        .connect(&url)
        .await
        .expect("connected");
    let diesel_pool = diesel_pool(&url);
    let by_sqlx = || outbox_sqlx::PgStore::new(pool.clone()).retention(Retention::DeleteAtOnce);
    let by_diesel =
        || outbox_diesel::PgStore::new(diesel_pool.clone()).retention(Retention::DeleteAtOnce);
    by_sqlx().migrate().await.expect("migrated");
    println!(
        "{events} events of 400 bytes, thousand events/s: by hand; sqlx, ratio; diesel, ratio"
    );
    for batch in [100, 1_000] {
        for workers in [1, 2, 4] {
            fill(&pool, events, "NULL", 0).await;
            let hand = rate(events, by_hand(&pool, batch, workers).await);
            fill(&pool, events, "NULL", 0).await;
            let sqlx = rate(events, by_store(by_sqlx, batch, workers).await);
            fill(&pool, events, "NULL", 0).await;
            let diesel = rate(events, by_store(by_diesel, batch, workers).await);
            println!(
                "batch {batch:>4}, workers {workers}: {hand:>6.1}; {sqlx:>6.1} {:.2}; {diesel:>6.1} {:.2}",
                sqlx / hand,
                diesel / hand
            );
        }
    }
    println!("keys through sqlx, batch 100, thousand events/s: 10,000 keys (Zipf), one key");
    for workers in [1, 2, 4] {
        let zipf = "floor(10000 ^ random())::bigint::text";
        fill(&pool, events, zipf, 2).await;
        let many = rate(events, by_store(by_sqlx, 100, workers).await);
        fill(&pool, events, "'k'", 2).await;
        let one = rate(events, by_store(by_sqlx, 100, workers).await);
        println!("workers {workers}: {many:>6.1} {one:>6.1}");
    }
}

fn diesel_pool(url: &str) -> Pool<AsyncPgConnection> {
    let mut config = ManagerConfig::default();
    config.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url, config);
    let pool = Pool::builder(manager).max_size(8);
    pool.build().expect("a pool")
}

fn rate(events: i64, took: Duration) -> f64 {
    let events = u32::try_from(events).expect("fewer events");
    f64::from(events) / took.as_secs_f64() / 1_000.0
}

async fn execute(pool: &PgPool, text: String) {
    sqlx::raw_sql(AssertSqlSafe(text))
        .execute(pool)
        .await
        .expect("executed");
}

async fn fill(pool: &PgPool, events: i64, key: &str, shape: i16) {
    execute(pool, "TRUNCATE outbox_events RESTART IDENTITY".to_owned()).await;
    execute(
        pool,
        format!(
            "INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
             SELECT gen_random_uuid(), 'RepositoryPushed', 'https://ci.example/hooks', {key},
                 decode(repeat('ab', 400), 'hex'), {shape}
             FROM generate_series(1, {events})"
        ),
    )
    .await;
    execute(pool, "VACUUM ANALYZE outbox_events".to_owned()).await;
    execute(pool, "CHECKPOINT".to_owned()).await;
}

/// Claims and settles until nothing is left, by so many workers on stores of their own.
async fn by_store<S: OutboxStore + 'static>(
    store: impl Fn() -> S,
    batch: u32,
    workers: usize,
) -> Duration {
    let begun = Instant::now();
    let left = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let store = store();
            let left = Arc::clone(&left);
            tokio::spawn(async move {
                let rows = NonZeroU32::new(batch).expect("rows");
                let mut empty = 0;
                while empty < 3 {
                    let request = ClaimRequest::new(rows, LEASE);
                    let claim = store.claim(&request).await.expect("claimed");
                    let published: Vec<Settlement> = claim
                        .events
                        .iter()
                        .map(|claimed| Settlement::new(claimed.lease, Outcome::Published))
                        .collect();
                    if published.is_empty() {
                        empty += 1;
                        tokio::task::yield_now().await;
                        continue;
                    }
                    empty = 0;
                    left.fetch_add(published.len(), Ordering::Relaxed);
                    store.settle(&published).await.expect("settled");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a worker");
    }
    begun.elapsed()
}

/// The best statements known, by hand: a heap-only claim by `ctid` behind a low-water mark, and a
/// delete.
async fn by_hand(pool: &PgPool, batch: u32, workers: usize) -> Duration {
    let claim = format!(
        "UPDATE outbox_events SET attempts = attempts + 1, lease_token = $1,
             lease_until = now() + interval '30 seconds'
         WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM outbox_events
             WHERE shape = 0 AND seq >= $2 AND (lease_until IS NULL OR lease_until < now())
             ORDER BY seq LIMIT {batch} FOR UPDATE SKIP LOCKED))
         RETURNING seq, id, event_type, destination, payload, headers, attempts"
    );
    let claim: Arc<str> = claim.into();
    let begun = Instant::now();
    let tasks: Vec<_> = (0..workers)
        .map(|_| tokio::spawn(hand_worker(pool.clone(), Arc::clone(&claim))))
        .collect();
    for task in tasks {
        task.await.expect("a worker");
    }
    begun.elapsed()
}

struct Event {
    seq: i64,
    _id: Uuid,
    _event_type: String,
    _destination: String,
    _payload: Vec<u8>,
    _headers: Option<String>,
    _attempts: i32,
}

async fn hand_worker(pool: PgPool, claim: Arc<str>) {
    let mark = AtomicI64::new(i64::MIN);
    loop {
        let token = Uuid::from_bytes(*outbox_core::LeaseToken::new().as_bytes());
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&claim)))
            .bind(token)
            .bind(mark.load(Ordering::Relaxed))
            .fetch_all(&pool)
            .await
            .expect("claimed");
        if rows.is_empty() {
            return;
        }
        let mut events: Vec<Event> = rows
            .iter()
            .map(|row| Event {
                seq: row.get(0),
                _id: row.get(1),
                _event_type: row.get(2),
                _destination: row.get(3),
                _payload: row.get(4),
                _headers: row.get(5),
                _attempts: row.get(6),
            })
            .collect();
        events.sort_unstable_by_key(|event| event.seq);
        let seqs: Vec<i64> = events.iter().map(|event| event.seq).collect();
        mark.store(seqs[seqs.len() - 1], Ordering::Relaxed);
        let deleted = sqlx::query(
            "DELETE FROM outbox_events WHERE seq = ANY ($1) AND lease_token = $2 RETURNING seq",
        )
        .bind(seqs)
        .bind(token)
        .fetch_all(&pool)
        .await
        .expect("settled");
        assert!(!deleted.is_empty());
    }
}
