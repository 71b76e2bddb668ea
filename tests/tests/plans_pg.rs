//! How PostgreSQL carries out claims beside a million rows: the plans that the server's log tells,
//! those within functions included.

#[path = "harness/plans.rs"]
mod plans;

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    ClaimRequest, Claimed, DestinationFilter, Hold, LeaseStatus, LeaseToken, Maintenance,
    OutboxStore, Outcome, Retention, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, PgPool};
use plans::{LOGGING, plans, steps};
use tests::PgServer;

const BATCH: u32 = 100;
/// The most rows that a step of a claim of 100 may touch: it looks at a thousand at most, or at 50
/// keys.
const TOUCHED: f64 = 5_000.0;

/// A quarter each fresh, due, keyed and parked, for ten destinations.
fn fill(rows: u32) -> String {
    format!(
        "INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
        SELECT gen_random_uuid(), 'T', 'd' || n / 4 % 10,
            CASE WHEN n % 4 = 2 THEN (n / 4 % 10000)::text END,
            decode(repeat('ab', 200), 'hex'), n % 4
        FROM generate_series(1, {rows}) n"
    )
}

/// A server that logs the plan of every statement on new connections to the database.
fn server() -> (PgServer, String) {
    let sizes = ["shared_buffers=256MB", "max_wal_size=4GB"];
    let server = PgServer::start_with(&[&LOGGING[..], &sizes].concat());
    let url = server.create_database();
    (server, url)
}

/// From the next connection on.
fn log_plans(server: &PgServer, database: &str) {
    server.sql(
        "postgres",
        &format!("ALTER DATABASE {database} SET auto_explain.log_min_duration = 0"),
    );
}

/// One connection, so that what it does is told as soon as it is asked.
async fn store(url: &str) -> PgStore {
    let pool = PgPoolOptions::new().max_connections(1).connect(url).await;
    PgStore::new(pool.expect("connected")).retention(Retention::DeleteAtOnce)
}

/// Claims a few times, often enough that plans become generic, and settles; returns how many events
/// came.
async fn drain(store: &PgStore, rows: u32, destinations: DestinationFilter) -> usize {
    let rows = NonZeroU32::new(rows).expect("rows");
    let mut request = ClaimRequest::new(rows, Duration::from_secs(60));
    request.destinations = destinations;
    let mut taken = 0;
    for _ in 0..12 {
        request.token = LeaseToken::new();
        let claim = store.claim(&request).await.expect("claimed");
        let published: Vec<Settlement> = claim
            .events
            .iter()
            .map(|one| Settlement::new(one.lease, Outcome::Published))
            .collect();
        taken += published.len();
        store.settle(&published).await.expect("settled");
    }
    taken
}

/// The same where the limit of bytes ends each claim, and each settle comes twice.
async fn drain_what_has_room(store: &PgStore) -> usize {
    let rows = NonZeroU32::new(BATCH).expect("rows");
    let mut request = ClaimRequest::new(rows, Duration::from_secs(60));
    request.bytes = 4_000;
    let mut taken = 0;
    for _ in 0..12 {
        request.token = LeaseToken::new();
        let claim = store.claim(&request).await.expect("claimed");
        assert!(claim.events.len() <= 20, "{}", claim.events.len());
        let published = |one: &Claimed| Settlement::new(one.lease, Outcome::Published);
        let published: Vec<Settlement> = claim.events.iter().map(published).collect();
        for status in [LeaseStatus::Ours, LeaseStatus::Unknown] {
            let told = store.settle(&published).await.expect("settled");
            assert!(told.iter().all(|one| *one == status), "{told:?}");
        }
        taken += published.len();
    }
    taken
}

/// Rows updated, those heap-only, scans of the whole table.
async fn counters(pool: &PgPool) -> (i64, i64, i64) {
    let mut conn = pool.acquire().await.expect("acquired");
    // Since version 15 only; earlier ones tell it by themselves, half a second later.
    let _ = sqlx::query("SELECT pg_stat_force_next_flush()")
        .execute(&mut *conn)
        .await;
    sqlx::query_as(
        "SELECT n_tup_upd, n_tup_hot_upd, seq_scan FROM pg_stat_user_tables
         WHERE relname = 'outbox_events'",
    )
    .fetch_one(&mut *conn)
    .await
    .expect("counters")
}

#[tokio::test]
async fn claims_beside_a_million_rows_touch_few_and_find_them_by_index() {
    let (server, url) = server();
    let database = url.rsplit('/').next().expect("a name");
    store(&url).await.migrate().await.expect("migrated");
    server.sql(database, &fill(1_000_000));
    server.sql(database, "ANALYZE");
    log_plans(&server, database);

    let store = store(&url).await;
    let before = counters(store.pool()).await;
    assert!(drain(&store, BATCH, DestinationFilter::All).await >= 1_000);
    let after = counters(store.pool()).await;
    let (updated, heap_only) = (after.0 - before.0, after.1 - before.1);
    assert!(updated >= 1_000, "{updated}");
    assert_eq!(updated, heap_only, "claims write to an index");
    assert!(drain_what_has_room(&store).await >= 200);
    let hold = Hold::Disabled {
        reason: "a test".to_owned(),
    };
    store.hold("d1", hold).await.expect("held");
    assert!(drain(&store, BATCH, DestinationFilter::All).await >= 1_000);
    let except = DestinationFilter::Except(vec!["d2".to_owned(), "d3".to_owned()]);
    assert!(drain(&store, BATCH, except).await >= 1_000);
    let after = counters(store.pool()).await;
    assert_eq!(before.2, after.2, "the table was scanned");

    let mut indexes = Vec::new();
    for plan in plans(&server) {
        for step in steps(&plan["Plan"]) {
            let times = step["Actual Loops"].as_f64().unwrap_or(0.0);
            let rows = |name: &str| step[name].as_f64().unwrap_or(0.0) * times;
            let touched = rows("Actual Rows") + rows("Rows Removed by Filter");
            assert!(touched <= TOUCHED, "{touched} rows in one step of {plan:#}");
            let kind = step["Node Type"].as_str().unwrap_or_default();
            if step["Relation Name"] == "outbox_events" {
                let good = ["Index Scan", "Index Only Scan", "Tid Scan", "ModifyTable"];
                assert!(good.contains(&kind), "{kind} in {plan:#}");
            }
            if let Some(index) = step["Index Name"].as_str() {
                indexes.push(index.to_owned());
            }
        }
    }
    for shape in ["fresh", "due", "front", "parked"] {
        let index = format!("outbox_events_{shape}");
        assert!(indexes.contains(&index), "nothing went by {index}");
    }
}

/// A backlog that came since the server last looked at the table; and calls that read many rows, whatever
/// the server knows.
#[tokio::test]
async fn large_claims_and_counts_go_by_index_where_the_server_knows_of_few_rows() {
    let (server, url) = server();
    let database = url.rsplit('/').next().expect("a name");
    store(&url).await.migrate().await.expect("migrated");
    server.sql(
        database,
        "ALTER TABLE outbox_events SET (autovacuum_enabled = off)",
    );
    server.sql(database, &fill(2_500));
    server.sql(database, "ANALYZE");
    server.sql(database, &fill(700_000));
    log_plans(&server, database);

    let store = store(&url).await;
    let before = counters(store.pool()).await;
    for rows in [1_000, 7_000] {
        let but_one = DestinationFilter::Except(vec!["d2".to_owned()]);
        for destinations in [DestinationFilter::All, but_one] {
            assert!(drain(&store, rows, destinations).await >= 6_000);
        }
    }
    for _ in 0..7 {
        store.stats(100_000).await.expect("told");
        let released = store.release_claim(LeaseToken::new()).await;
        assert_eq!(released.expect("released"), 0);
    }
    let after = counters(store.pool()).await;
    assert_eq!(before.2, after.2, "the table was scanned");
    none_scans(&server);
}

/// By the statistics, the conditions of a claim leave no row: a scan of the table and a sort of nothing
/// would be cheap.
#[tokio::test]
async fn claims_go_by_index_where_the_server_knows_of_leased_rows_alone() {
    let (server, url) = server();
    let database = url.rsplit('/').next().expect("a name");
    store(&url).await.migrate().await.expect("migrated");
    server.sql(database, &fill(40_000));
    server.sql(
        database,
        "UPDATE outbox_events SET destination = 'd', lease_until = now() + interval '1 hour'",
    );
    server.sql(database, "ANALYZE");
    log_plans(&server, database);

    let store = store(&url).await;
    let here = || vec!["d".to_owned()];
    for destinations in [
        DestinationFilter::All,
        DestinationFilter::Only(here()),
        DestinationFilter::Except(here()),
    ] {
        assert_eq!(drain(&store, BATCH, destinations).await, 0);
    }
    none_scans(&server);
}

/// No plan in the log scans the table of events, and none was compiled.
fn none_scans(server: &PgServer) {
    for plan in plans(server) {
        assert!(plan["JIT"].is_null(), "compiled: {plan:#}");
        for step in steps(&plan["Plan"]) {
            let scan = step["Node Type"] == "Seq Scan" && step["Relation Name"] == "outbox_events";
            assert!(!scan, "{plan:#}");
        }
    }
}
