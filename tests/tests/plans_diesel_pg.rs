//! How PostgreSQL carries out what a store of outbox-diesel asks, beside many rows: the plans that the
//! server's log tells, those within functions included.

#[path = "harness/at.rs"]
mod at;
#[path = "harness/plans.rs"]
mod plans;
#[path = "harness/work.rs"]
mod work;

use at::At;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use outbox_core::{Enqueue, NewEvent, Retention};
use outbox_diesel::PgStore;
use plans::{LOGGING, plans, steps};
use serde_json::Value;
use tests::PgServer;

const ROWS: u32 = 100_000;

/// A quarter each fresh, due, keyed and parked, for ten destinations; and what has ended.
fn fill() -> String {
    format!(
        "INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
        SELECT gen_random_uuid(), 'T', 'd' || n / 4 % 10,
            CASE WHEN n % 4 = 2 THEN (n / 4 % 10000)::text END,
            decode(repeat('ab', 200), 'hex'), n % 4
        FROM generate_series(1, {ROWS}) n;
        INSERT INTO outbox_published (seq, id, created_at, published_at, attempts, replays,
            event_type, destination, content_type, payload)
        SELECT nextval('outbox_events_seq'), gen_random_uuid(), now(), now() - interval '2 days',
            1, 0, 'T', 'd1', 'c', 'x'
        FROM generate_series(1, {ROWS}) n;
        INSERT INTO outbox_dead (seq, id, created_at, dead_at, attempts, replays,
            event_type, destination, key, content_type, reason, payload)
        SELECT nextval('outbox_events_seq'), gen_random_uuid(), now(), now() - interval '2 days',
            1, 0, 'T', 'd' || n % 10, CASE WHEN n % 2 = 0 THEN n::text END, 'c', 'gone', 'x'
        FROM generate_series(1, {ROWS}) n;
        INSERT INTO outbox_dedup (dedup_key, id, created_at)
        SELECT n::text, gen_random_uuid(), now() - interval '2 days'
        FROM generate_series(1, {ROWS}) n;
        ANALYZE"
    )
}

fn scans(plan: &Value) -> bool {
    steps(&plan["Plan"])
        .iter()
        .any(|step| step["Node Type"] == "Seq Scan" && step["Relation Name"] == "outbox_events")
}

/// What operators ask of dead letters is planned by what the server knows: a replay without a filter looks
/// which of all letters are open again, by a scan of both.
fn replays(plan: &Value) -> bool {
    let text = plan["Query Text"].as_str().unwrap_or_default();
    text.contains("INSERT INTO \"outbox_events\"") && text.contains("FROM \"outbox_dead\"")
}

#[tokio::test]
async fn no_call_but_a_replay_scans_the_table_of_events() {
    let sizes = ["shared_buffers=256MB", "max_wal_size=4GB"];
    let server = PgServer::start_with(&[&LOGGING[..], &sizes].concat());
    let url = server.create_database();
    drop(PgStore::at(&url, 1, Retention::Keep).await);
    server.sql("test_0", &fill());
    // From the next connection on.
    server.sql(
        "postgres",
        "ALTER DATABASE test_0 SET auto_explain.log_min_duration = 0",
    );

    for retention in [Retention::Keep, Retention::DeleteAtOnce] {
        // One connection, so that plans become generic.
        let store = PgStore::at(&url, 1, retention).await;
        for _ in 0..4 {
            assert!(work::works(&store).await > 100);
        }
        let mut conn = AsyncPgConnection::establish(&url).await.expect("connected");
        let event = || NewEvent::bytes("T", "x").to("d1");
        let once = event().dedup_key("1");
        let events = vec![event(), event().key("k"), once.clone()];
        let stored = store.enqueue_all(&mut conn, events).await;
        stored.expect("stored");
        store.enqueue(&mut conn, once).await.expect("stored");
    }
    let told = plans(&server);
    assert!(told.len() > 1_000, "{} plans", told.len());
    for table in ["events", "published", "dead", "dedup"] {
        let table = format!("outbox_{table}");
        let is_of = |step: &&Value| step["Relation Name"] == table.as_str();
        let met = |plan: &Value| steps(&plan["Plan"]).into_iter().any(|step| is_of(&step));
        assert!(told.iter().any(met), "no plan looks at {table}");
    }
    for plan in told.iter().filter(|plan| scans(plan)) {
        assert!(replays(plan), "{plan:#}");
    }

    // A scan would be told.
    server.sql(
        "test_0",
        "SELECT count(*) FROM outbox_events WHERE payload = 'x'",
    );
    let after = plans(&server);
    let others = after.iter().filter(|plan| scans(plan) && !replays(plan));
    assert_eq!(others.count(), 1);
}
