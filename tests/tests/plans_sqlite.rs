//! How SQLite carries out what a store asks, beside many rows: by `EXPLAIN QUERY PLAN`.

#[path = "harness/work.rs"]
mod work;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use diesel::connection::InstrumentationEvent;
use diesel::result::ConnectionResult;
use diesel_async::AsyncConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use outbox_core::{Enqueue, NewEvent, Retention};
use outbox_diesel::SqliteStore;
use outbox_sqlx::sqlx::sqlite::SqliteRow;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Row, SqlitePool};

type Connection = SyncConnectionWrapper<diesel::SqliteConnection>;

const ROWS: u32 = 40_000;
/// A scan that ends: in the order of claims, up to a limit.
const IN_ORDER: &str = "USING INDEX outbox_events_fresh";
/// Keys whose destination is held, of which most could be claimed otherwise: up to a limit.
const PARKED: &str = "INDEX outbox_lanes_parked";
/// Counts look at the first rows by number, up to a limit.
const FIRST: &str = "FROM \"outbox_events\" ORDER BY seq LIMIT ?2";

/// A quarter each fresh, due, keyed and parked, for ten destinations; and what has ended.
fn fill() -> String {
    let numbers = format!(
        "WITH RECURSIVE numbers (n) AS (
            SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS})"
    );
    format!(
        "INSERT INTO outbox_events (id, event_type, destination, \"key\", payload, content_type,
            created_at, shape, available_at)
        {numbers} SELECT randomblob(16), 'T', 'd' || n / 4 % 10, CASE WHEN n % 4 = 2 THEN n / 4 % 3000 END,
            'x', 'c', 1, n % 4, CASE n % 4 WHEN 1 THEN 1 END FROM numbers;
        INSERT INTO outbox_published (seq, id, event_type, destination, payload, content_type,
            created_at, attempts, replays, published_at)
        {numbers} SELECT 1000000 + n, randomblob(16), 'T', 'd1', 'x', 'c', 1, 1, 0, 1 FROM numbers;
        INSERT INTO outbox_dead (seq, id, event_type, destination, \"key\", payload, content_type,
            created_at, attempts, replays, reason, dead_at)
        {numbers} SELECT 2000000 + n, randomblob(16), 'T', 'd' || n % 10,
            CASE WHEN n % 2 = 0 THEN n END, 'x', 'c', 1, 1, 0, 'gone', 1 FROM numbers;
        INSERT INTO outbox_dedup (dedup_key, id, created_at)
        {numbers} SELECT n, randomblob(16), 1 FROM numbers;
        UPDATE sqlite_sequence SET seq = 3000000"
    )
}

/// The statements that connections have prepared.
type Texts = Arc<Mutex<BTreeSet<String>>>;

/// A connection that notes what it prepares.
async fn open(path: String, texts: Texts) -> ConnectionResult<Connection> {
    let mut conn = SqliteStore::open(path).await?;
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::CacheQuery { sql, .. } = event {
            let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
            texts.insert(sql.to_owned());
        }
    });
    Ok(conn)
}

/// Everything that stores of both kinds run, and what triggers do.
async fn statements(path: &Path, pool: &SqlitePool) -> BTreeSet<String> {
    let texts = Texts::default();
    let path = path.display().to_string();
    for retention in [Retention::Keep, Retention::DeleteAtOnce] {
        let mut config = ManagerConfig::default();
        let noted = Arc::clone(&texts);
        config.custom_setup =
            Box::new(move |path| Box::pin(open(path.to_owned(), Arc::clone(&noted))));
        let manager = AsyncDieselConnectionManager::new_with_config(&path, config);
        let pool = Pool::builder(manager).max_size(1).build().expect("a pool");
        let store = SqliteStore::new(pool).expect("a store");
        let store = store.retention(retention);
        assert!(work::works(&store).await > 100);
        let conn = open(path.clone(), Arc::clone(&texts)).await;
        let mut conn = conn.expect("opened");
        let event = || NewEvent::bytes("T", "x").to("d1");
        let once = event().dedup_key("1");
        for events in [vec![event(), event().key("k")], vec![once; 2]] {
            let stored = store.enqueue_all(&mut conn, events).await;
            stored.expect("stored");
        }
    }
    let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(texts.len() > 20, "{texts:#?}");
    let triggers = "SELECT sql FROM sqlite_schema WHERE type = 'trigger'";
    let triggers: Vec<String> = sqlx::query_scalar(triggers)
        .fetch_all(pool)
        .await
        .expect("triggers");
    assert!(triggers.len() > 5, "{triggers:#?}");
    texts.extend(triggers.iter().flat_map(|trigger| steps_of(trigger)));
    texts
}

/// The statements of a trigger, with parameters for the columns of its row.
fn steps_of(trigger: &str) -> Vec<String> {
    let (_, body) = trigger.split_once("BEGIN").expect("a body");
    let (body, _) = body.rsplit_once("END").expect("a body");
    let mut text = String::new();
    let mut parts = body.split("new.").flat_map(|part| part.split("old."));
    text += parts.next().unwrap_or_default();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_alphanumeric() || "_\"".contains(c));
        text += "?";
        text += rest;
    }
    let steps = text.split(';').map(str::trim);
    steps
        .filter(|step| !step.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A step of a plan: the one above it, and what it does.
type Step = (i64, String);

async fn plan(pool: &SqlitePool, text: &str) -> Vec<Step> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
    let rows = sqlx::query(explain).fetch_all(pool).await.expect(text);
    let step = |row: &SqliteRow| (row.get(1), row.get(3));
    rows.iter().map(step).collect()
}

/// What a statement calls a table.
fn names<'a>(table: &'a str, text: &'a str) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::from([table]);
    for after in text.split(&format!("\"{table}\"")).skip(1) {
        let mut words = after.split_whitespace().filter(|word| *word != "AS");
        names.extend(words.next().filter(|word| word.len() == 1));
    }
    names
}

/// What is wrong with the plan of a statement: events, or the keys of all, are looked at from end to
/// end, or events are sorted.
fn wrong(text: &str, plan: &[Step]) -> Option<String> {
    let [events, lanes] = ["outbox_events", "outbox_lanes"].map(|table| names(table, text));
    let of = |names: &BTreeSet<&str>, step: &str| {
        let name = step.split(' ').nth(1);
        name.is_some_and(|name| names.contains(name))
    };
    let of_events = |step: &str| of(&events, step);
    for (above, step) in plan {
        let parked = step.ends_with(PARKED);
        if step.starts_with("SCAN ") && of(&lanes, step) && !parked {
            return Some(step.clone());
        }
        let scans = step.starts_with("SCAN ") && of_events(step);
        let few = step.ends_with(IN_ORDER);
        if scans && !few && !(step == "SCAN outbox_events" && text.contains(FIRST)) {
            return Some(step.clone());
        }
        let sorts = step.starts_with("USE TEMP B-TREE FOR") && step.contains("ORDER BY");
        let many = |(of, beside): &&Step| {
            let one = beside.ends_with("USING INTEGER PRIMARY KEY (rowid=?)");
            of == above && of_events(beside) && !one
        };
        if sorts && let Some((_, sorted)) = plan.iter().find(many) {
            return Some(format!("{sorted}, {step}"));
        }
    }
    None
}

async fn wrong_ones(pool: &SqlitePool, texts: &BTreeSet<String>) -> Vec<String> {
    let mut wrong_ones = Vec::new();
    for text in texts {
        let problem = wrong(text, &plan(pool, text).await);
        wrong_ones.extend(problem.map(|problem| format!("{problem}: {text}")));
    }
    wrong_ones
}

#[tokio::test]
async fn no_call_scans_or_sorts_events_or_keys() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("db");
    let other = outbox_sqlx::SqliteStore::connect(&path).await;
    let other = other.expect("opened");
    other.migrate().await.expect("migrated");
    let pool = other.pool();
    let fill = sqlx::raw_sql(AssertSqlSafe(fill()));
    fill.execute(pool).await.expect("filled");

    let texts = statements(&path, pool).await;
    for _ in 0..2 {
        let none: [String; 0] = [];
        assert_eq!(wrong_ones(pool, &texts).await, none);
        // And now that the server knows the table.
        sqlx::raw_sql("ANALYZE").execute(pool).await.expect("done");
    }

    // What is wrong is seen.
    let events = "SELECT seq FROM \"outbox_events\" e WHERE e.shape";
    let wrong = [
        format!("{events} + 0 = 0"),
        format!("{events} = 1 AND e.available_at <= 1 ORDER BY e.created_at"),
        "SELECT 1 FROM \"outbox_lanes\" WHERE ready_at < 1".to_owned(),
    ];
    let found = wrong_ones(pool, &BTreeSet::from(wrong)).await;
    assert_eq!(found.len(), 3, "{found:#?}");
}
