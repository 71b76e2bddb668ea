//! Plans of prepared statements that were made while the tables were small, where these are large by
//! now and the server has not looked at them since: no statement that runs all the time may scan.

#[path = "harness/plans.rs"]
mod plans;

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    BeginKey, ClaimRequest, Claimed, CompleteKey, DeathReason, DestinationFilter, Enqueue,
    Fingerprint, Hold, IdempotencyKey, IdempotencyKeys, Inbox, InboxMessage, Lease, LeaseToken,
    Maintenance, NewEvent, OutboxStore, Outcome, Prune, Retention, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool};
use plans::{LOGGING, plans, steps};
use serde_json::Value;
use tests::PgServer;

/// What a statement may read of pages. The large tables have 2,000 and more each; a step of a claim
/// looks at a few hundred rows.
const BLOCKS: f64 = 1_500.0;
const LEASE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Rows of all kinds.
fn fill(rows: u32) -> String {
    format!(
        "INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
        SELECT gen_random_uuid(), 'T', 'd' || n / 4 % 10,
            CASE WHEN n % 4 = 2 THEN (n / 4)::text END,
            decode(repeat('ab', 300), 'hex'), n % 4
        FROM generate_series(1, {rows}) n;
        INSERT INTO outbox_published (seq, id, created_at, published_at, attempts, replays,
            event_type, destination, content_type, payload)
        SELECT nextval('outbox_events_seq'), gen_random_uuid(), now(), now() - interval '2 days',
            1, 0, 'T', 'd', 'c', decode(repeat('ab', 300), 'hex')
        FROM generate_series(1, {rows}) n;
        INSERT INTO outbox_dead (seq, id, created_at, dead_at, attempts, replays,
            event_type, destination, content_type, reason, payload)
        SELECT nextval('outbox_events_seq'), gen_random_uuid(), now(), now() - interval '2 days',
            1, 0, 'T', 'd', 'c', 'gone', decode(repeat('ab', 300), 'hex')
        FROM generate_series(1, {rows}) n;
        INSERT INTO outbox_dedup (dedup_key, id, created_at)
        SELECT repeat('k', 200) || gen_random_uuid(), gen_random_uuid(), now() - interval '2 days'
        FROM generate_series(1, {rows}) n;
        INSERT INTO outbox_discards (seq, id, event_type, destination, death_reason,
            discard_reason, discarded_at)
        SELECT n, gen_random_uuid(), 'T', 'd', 'gone', repeat('why', 80), now() - interval '2 days'
        FROM generate_series(1, {rows}) n;
        INSERT INTO outbox_idempotency (scope, key, fingerprint, token, answer, expires_at)
        SELECT 's', gen_random_uuid()::text, '\\x00', gen_random_uuid(),
            decode(repeat('ab', 300), 'hex'), now()
        FROM generate_series(1, {rows}) n;
        INSERT INTO outbox_inbox (source, id, fingerprint, expires_at)
        SELECT 's', repeat('k', 200) || gen_random_uuid(), '\\x00', now()
        FROM generate_series(1, {rows}) n"
    )
}

/// One connection, so that what was prepared is used again.
async fn store(url: &str, retention: Retention) -> PgStore {
    let pool = PgPoolOptions::new().max_connections(1).connect(url).await;
    PgStore::new(pool.expect("connected")).retention(retention)
}

async fn run(pool: &PgPool, statements: &str) {
    let statements = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
    statements.execute(pool).await.expect("done");
}

async fn claim(store: &PgStore, rows: u32, destinations: DestinationFilter) -> Vec<Claimed> {
    let mut request = ClaimRequest::new(NonZeroU32::new(rows).expect("rows"), LEASE);
    request.destinations = destinations;
    store.claim(&request).await.expect("claimed").events
}

fn leases(events: &[Claimed]) -> Vec<Lease> {
    events.iter().map(|claimed| claimed.lease).collect()
}

fn outcome(place: usize) -> Outcome {
    let (after, error) = (Duration::from_secs(60), "500".to_owned());
    match place % 4 {
        0 => Outcome::Published,
        1 => Outcome::Retry { after, error },
        2 => Outcome::Defer {
            after,
            reason: error,
        },
        _ => Outcome::Dead {
            reason: DeathReason::Gone,
            error,
        },
    }
}

async fn settle(store: &PgStore, leases: &[Lease], outcome: impl Fn(usize) -> Outcome) {
    let settlement = |(place, lease): (usize, &Lease)| Settlement::new(*lease, outcome(place));
    let batch: Vec<Settlement> = leases.iter().enumerate().map(settlement).collect();
    store.settle(&batch).await.expect("settled");
}

/// What relays do.
async fn relay(store: &PgStore) {
    let mut all = Vec::new();
    for rows in [1, 10] {
        for _ in 0..4 {
            let claimed = claim(store, rows, DestinationFilter::All).await;
            store
                .extend(&leases(&claimed), LEASE)
                .await
                .expect("extended");
            settle(store, &leases(&claimed), |_| Outcome::Published).await;
            all.extend(claim(store, rows, DestinationFilter::All).await);
        }
    }
    settle(store, &leases(&all[..all.len() / 2]), |_| {
        Outcome::Published
    })
    .await;
    settle(store, &leases(&all), outcome).await;
    let lost = ClaimRequest::new(NonZeroU32::new(10).expect("rows"), LEASE);
    let taken = store.claim(&lost).await.expect("claimed");
    let released = store.release_claim(lost.token).await.expect("released");
    assert_eq!(released, taken.events.len() as u64);
    let but_one = DestinationFilter::Except(vec!["d2".to_owned()]);
    let claimed = claim(store, 10, but_one).await;
    settle(store, &leases(&claimed), outcome).await;
    store.release(&leases(&claimed)).await.expect("released");
    let a_moment = Hold::For {
        period: Duration::from_micros(1),
        reason: "429".to_owned(),
    };
    store.hold("d3", a_moment).await.expect("held");
}

/// What producers do.
async fn producer(store: &PgStore) {
    let key = format!("{:?}", LeaseToken::new());
    let event = NewEvent::bytes("T", "x").to("d1").dedup_key(key);
    let events = vec![event.clone(), NewEvent::bytes("T", "x").to("d1").key("k")];
    let mut conn = store.pool().acquire().await.expect("acquired");
    let stored = store.enqueue_all(&mut *conn, events).await;
    stored.expect("stored");
    store.enqueue(&mut *conn, event).await.expect("stored");
}

/// What receivers do.
async fn receiver(store: &PgStore) {
    let name = format!("{:?}", LeaseToken::new());
    let message = InboxMessage::from_source("s", name.clone()).expect("a message");
    let mut conn = store.pool().acquire().await.expect("acquired");
    for _ in 0..2 {
        let accepted = store.accept(&mut *conn, &message).await;
        accepted.expect("accepted");
    }
    drop(conn);
    let key = IdempotencyKey::new("s", name).expect("a key");
    let [begin, again] =
        [1, 2].map(|_| BeginKey::new(key.clone(), Fingerprint::from_bytes([1; 32])));
    for _ in 0..2 {
        store.begin_key(&begin).await.expect("begun");
        store.begin_key(&again).await.expect("begun");
        for token in [begin.token, again.token] {
            let extended = store.extend_key(&key, token, LEASE).await;
            extended.expect("extended");
        }
        let completed = store.complete_key(&CompleteKey::new(&begin, "x")).await;
        completed.expect("completed");
        let abandoned = store.abandon_key(&key, begin.token).await;
        abandoned.expect("abandoned");
    }
}

/// What jobs do.
async fn jobs(store: &PgStore) {
    let mut prune = Prune::default();
    prune.published_after = Some(DAY);
    prune.dead_after = Some(DAY);
    prune.dedup_after = Some(DAY);
    prune.rows = 1;
    store.prune(&prune).await.expect("pruned");
    store.prune_keys(1).await.expect("pruned");
    store.stats(100).await.expect("told");
}

/// How often a plan reads what a release of a claim collects.
fn times_near(plan: &Value) -> f64 {
    let near = steps(plan)
        .into_iter()
        .filter(|step| step["CTE Name"] == "near");
    near.filter_map(|step| step["Actual Loops"].as_f64())
        .fold(0.0, f64::max)
}

#[tokio::test]
async fn plans_made_beside_small_tables_serve_large_ones() {
    let more = [
        "auto_explain.log_timing=off",
        "auto_explain.log_buffers=on",
        "autovacuum=off",
        "shared_buffers=256MB",
        "max_wal_size=4GB",
    ];
    let server = PgServer::start_with(&[&LOGGING[..], &more].concat());
    let url = server.create_database();
    let stores = [
        store(&url, Retention::DeleteAtOnce).await,
        store(&url, Retention::Keep).await,
    ];
    let pool = stores[0].pool();
    stores[0].migrate().await.expect("migrated");
    run(pool, &fill(40)).await;
    run(pool, "VACUUM ANALYZE").await;
    // The server takes a plan for any values from the sixth time on.
    for _ in 0..8 {
        run(pool, &fill(20)).await;
        for store in &stores {
            relay(store).await;
            producer(store).await;
            receiver(store).await;
            jobs(store).await;
        }
    }
    run(pool, &fill(60_000)).await;
    for store in &stores {
        run(store.pool(), "SET auto_explain.log_min_duration = 0").await;
        relay(store).await;
        producer(store).await;
        receiver(store).await;
        jobs(store).await;
    }
    let mut wrong = Vec::new();
    let plans = plans(&server);
    assert!(plans.len() > 100, "{}", plans.len());
    for plan in plans {
        let read = |name: &str| plan["Plan"][name].as_f64().unwrap_or(0.0);
        let blocks = read("Shared Hit Blocks") + read("Shared Read Blocks");
        let often = times_near(&plan["Plan"]);
        let statement = plan["Query Text"].as_str().unwrap_or_default().to_owned();
        // A release of a claim looks through the front of each shape, once.
        let releases = often == 1.0 || statement.contains("release_claim");
        let limit = if releases { 40.0 * BLOCKS } else { BLOCKS };
        if (blocks > limit || often > 1.0) && !wrong.iter().any(|(_, other)| *other == statement) {
            wrong.push((blocks, statement));
        }
    }
    let report = |(blocks, text): &(f64, String)| format!("{blocks} blocks: {text}\n");
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.iter().map(report).collect::<String>()
    );
}
