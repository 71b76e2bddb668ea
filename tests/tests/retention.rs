//! What becomes of published events, on every store: the history keeps them whole until it is pruned,
//! or they are deleted at once. Dead letters and de-duplication keys stay either way. And of the records
//! of discarded letters, which are kept as long.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

#[path = "harness/on.rs"]
mod on;

use std::num::NonZeroU32;
use std::time::Duration;

use on::On;
use outbox_core::{
    ClaimRequest, Claimed, Clock, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason,
    Destinations, Enqueue, LeaseStatus, Maintenance, ManualClock, NewEvent, OutboxStore, Outcome,
    Page, Prune, Pruned, Replay, Retention, Settlement, SystemClock,
};
use outbox_sqlx::sqlx::pool::PoolConnection;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Database, Executor, MySql, Postgres, Sqlite};
use tempfile::TempDir;
use tests::{MySqlServer, PgServer, mysql_advance, pg_advance};

const HOUR: Duration = Duration::from_secs(3_600);

fn event(payload: &[u8]) -> NewEvent {
    NewEvent::bytes("T", payload.to_vec()).to("somewhere")
}

fn dead() -> Outcome {
    Outcome::Dead {
        reason: DeathReason::Gone,
        error: "410".to_owned(),
    }
}

/// Claims `count` events and settles each as `outcome` says.
async fn settle(store: &impl OutboxStore, count: usize, outcome: impl Fn(&[u8]) -> Outcome) {
    let mut settled = 0;
    for _ in 0..1_000 {
        if settled == count {
            return;
        }
        let rows = NonZeroU32::new(10).unwrap();
        let request = ClaimRequest::new(rows, Duration::from_secs(60));
        let claim = store.claim(&request).await.unwrap();
        let settle =
            |claimed: &Claimed| Settlement::new(claimed.lease, outcome(&claimed.event.payload));
        let batch: Vec<_> = claim.events.iter().map(settle).collect();
        settled += store.settle(&batch).await.unwrap().len();
    }
    panic!("{settled} of {count} came");
}

/// Claims so many events.
async fn claim(store: &impl OutboxStore, count: u32) -> Vec<Claimed> {
    let mut came = Vec::new();
    for _ in 0..1_000 {
        let left = count - u32::try_from(came.len()).unwrap();
        let Some(rows) = NonZeroU32::new(left) else {
            return came;
        };
        let request = ClaimRequest::new(rows, Duration::from_secs(60));
        came.extend(store.claim(&request).await.unwrap().events);
    }
    panic!("{} of {count} came", came.len());
}

/// Publishes the next four events, of several claims, but the second one before the others. What of a call
/// is not under its lease changes nothing for the rest.
async fn publishes_one_before_the_rest(store: &impl OutboxStore) {
    let mut events = claim(store, 3).await;
    events.extend(claim(store, 1).await);
    let published = |one: &Claimed| Settlement::new(one.lease, Outcome::Published);
    let batch: Vec<_> = events.iter().map(published).collect();
    let (ours, unknown) = (LeaseStatus::Ours, LeaseStatus::Unknown);
    assert_eq!(store.settle(&batch[1..2]).await.unwrap(), [ours]);
    let first = store.settle(&batch[..3]).await.unwrap();
    assert_eq!(first, [ours, unknown, ours]);
    let all = store.settle(&batch).await.unwrap();
    assert_eq!(all, [unknown, unknown, unknown, ours]);
}

/// Publishes four events through `store`, one of them after a replay; `make` enqueues on `conn`.
async fn publishes<DB, S>(
    store: &S,
    make: &impl Enqueue<DB::Connection>,
    conn: &mut DB::Connection,
    retention: Retention,
) where
    DB: Database,
    S: OutboxStore + DeadLetters + Maintenance,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> (Vec<u8>,): sqlx::FromRow<'r, DB::Row>,
    for<'q> DB::Arguments: sqlx::IntoArguments<DB>,
{
    let list = vec![
        event(b"a\0\xff").dedup_key("once"),
        event(b"b").key("k"),
        event(b"dead").key("k"),
        event(b"c").delay(Duration::from_micros(1)),
    ];
    make.enqueue_all(conn, list).await.unwrap();
    let dies = |payload: &[u8]| match payload {
        b"dead" => dead(),
        _ => Outcome::Published,
    };
    settle(store, 4, dies).await;
    let stats = store.stats(10).await.unwrap();
    assert_eq!((stats.pending.value, stats.dead.value), (0, 1));
    let replay = Replay::new(DeadLetterFilter::all());
    assert_eq!(store.replay(&replay).await.unwrap(), 1);
    settle(store, 1, |_| Outcome::Published).await;

    let all: [&[u8]; 4] = [b"a\0\xff", b"b", b"dead", b"c"];
    let history = kept::<DB>(conn).await;
    match retention {
        Retention::Keep => assert_eq!(history, all),
        _ => assert_eq!(history, [b""; 0]),
    }
    let again = event(b"again").dedup_key("once");
    assert!(make.enqueue(conn, again).await.unwrap().duplicate);

    let mut prune = Prune::default();
    (prune.published_after, prune.dedup_after) = (Some(Duration::ZERO), Some(Duration::ZERO));
    prune.rows = 3;
    let mut pruned = (0, 0);
    for _ in 0..2 {
        let now = store.prune(&prune).await.unwrap();
        assert!(now.published <= 3, "{now:?}");
        pruned = (pruned.0 + now.published, pruned.1 + now.dedup);
    }
    assert_eq!(pruned, (history.len() as u64, 1));
    let again = event(b"again").dedup_key("once");
    assert!(!make.enqueue(conn, again).await.unwrap().duplicate);
    settle(store, 1, |_| Outcome::Published).await;
    store.prune(&prune).await.unwrap();

    let all: [&[u8]; 4] = [b"1", b"2", b"3", b"4"];
    let list = all.into_iter().map(event).collect();
    make.enqueue_all(conn, list).await.unwrap();
    publishes_one_before_the_rest(store).await;
    match retention {
        Retention::Keep => assert_eq!(kept::<DB>(conn).await, all),
        _ => assert_eq!(kept::<DB>(conn).await, [b""; 0]),
    }
    prune.rows = 4;
    store.prune(&prune).await.unwrap();
}

/// The payloads in the history.
async fn kept<DB>(conn: &mut DB::Connection) -> Vec<Vec<u8>>
where
    DB: Database,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> (Vec<u8>,): sqlx::FromRow<'r, DB::Row>,
    for<'q> DB::Arguments: sqlx::IntoArguments<DB>,
{
    let history = sqlx::query_as("SELECT payload FROM outbox_published ORDER BY seq");
    let history: Vec<(Vec<u8>,)> = history.fetch_all(conn).await.unwrap();
    history.into_iter().map(|(payload,)| payload).collect()
}

const BOTH: [Retention; 2] = [Retention::Keep, Retention::DeleteAtOnce];

/// A database with its tables: a store of each adapter on it, and a connection.
type Place<A, B, DB> = (A, B, PoolConnection<DB>);

async fn on_postgres(
    retention: Retention,
) -> Place<outbox_sqlx::PgStore, outbox_diesel::PgStore, Postgres> {
    let url = PgServer::shared().create_database();
    let by_sqlx = outbox_sqlx::PgStore::on(&url, 2).await.retention(retention);
    by_sqlx.migrate().await.unwrap();
    let by_diesel = outbox_diesel::PgStore::on(&url, 1).await;
    let conn = by_sqlx.pool().acquire().await.unwrap();
    (by_sqlx, by_diesel.retention(retention), conn)
}

async fn on_mysql(
    retention: Retention,
) -> Place<outbox_sqlx::MySqlStore, outbox_diesel::MySqlStore, MySql> {
    let url = MySqlServer::shared().create_database();
    let by_sqlx = outbox_sqlx::MySqlStore::on(&url, 2).await;
    let by_sqlx = by_sqlx.retention(retention);
    by_sqlx.migrate().await.unwrap();
    let by_diesel = outbox_diesel::MySqlStore::on(&url, 1).await;
    let conn = by_sqlx.pool().acquire().await.unwrap();
    (by_sqlx, by_diesel.retention(retention), conn)
}

/// In a file of this folder. The stores go by the clock.
async fn on_sqlite(
    folder: &TempDir,
    clock: impl Clock + Clone + 'static,
    retention: Retention,
) -> Place<outbox_sqlx::SqliteStore, outbox_diesel::SqliteStore, Sqlite> {
    let path = folder.path().join("db").display().to_string();
    let by_sqlx = outbox_sqlx::SqliteStore::on(&path, 2).await;
    let by_sqlx = by_sqlx.retention(retention).clock(clock.clone());
    by_sqlx.migrate().await.unwrap();
    let by_diesel = outbox_diesel::SqliteStore::on(&path, 1).await;
    let by_diesel = by_diesel.retention(retention).clock(clock);
    let conn = by_sqlx.pool().acquire().await.unwrap();
    (by_sqlx, by_diesel, conn)
}

#[tokio::test]
async fn is_kept_to_on_postgres() {
    for retention in BOTH {
        let (by_sqlx, by_diesel, mut conn) = on_postgres(retention).await;
        publishes::<Postgres, _>(&by_sqlx, &by_sqlx, &mut conn, retention).await;
        publishes::<Postgres, _>(&by_diesel, &by_sqlx, &mut conn, retention).await;
    }
}

#[tokio::test]
async fn is_kept_to_on_mysql() {
    for retention in BOTH {
        let (by_sqlx, by_diesel, mut conn) = on_mysql(retention).await;
        publishes::<MySql, _>(&by_sqlx, &by_sqlx, &mut conn, retention).await;
        publishes::<MySql, _>(&by_diesel, &by_sqlx, &mut conn, retention).await;
    }
}

#[tokio::test]
async fn is_kept_to_on_sqlite() {
    for retention in BOTH {
        let (folder, clock) = (tempfile::tempdir().unwrap(), SystemClock::new());
        let (by_sqlx, by_diesel, mut conn) = on_sqlite(&folder, clock, retention).await;
        publishes::<Sqlite, _>(&by_sqlx, &by_sqlx, &mut conn, retention).await;
        publishes::<Sqlite, _>(&by_diesel, &by_sqlx, &mut conn, retention).await;
    }
}

/// A database in which time can pass.
trait Ages: Database {
    /// Moves every stored instant back, or else the clock of the stores on.
    async fn age(conn: &mut Self::Connection, clock: &ManualClock, by: Duration);
}

async fn run<DB: Database>(conn: &mut DB::Connection, statements: String)
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    let statements = sqlx::raw_sql(AssertSqlSafe(statements));
    conn.execute(statements).await.unwrap();
}

impl Ages for Postgres {
    async fn age(conn: &mut Self::Connection, _: &ManualClock, by: Duration) {
        run::<Self>(conn, pg_advance(by)).await;
    }
}

impl Ages for MySql {
    async fn age(conn: &mut Self::Connection, _: &ManualClock, by: Duration) {
        run::<Self>(conn, mysql_advance(by)).await;
    }
}

impl Ages for Sqlite {
    async fn age(_: &mut Self::Connection, clock: &ManualClock, by: Duration) {
        clock.advance(by);
    }
}

/// Records of discarded letters go by their age, the oldest first and up to so many at a time; nothing
/// else goes with them, however old it is.
async fn forgets_discards<DB, S>(
    store: &S,
    make: &impl Enqueue<DB::Connection>,
    conn: &mut DB::Connection,
    clock: &ManualClock,
) where
    DB: Ages,
    S: OutboxStore + DeadLetters + Destinations + Maintenance,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> (i64,): sqlx::FromRow<'r, DB::Row>,
    for<'q> DB::Arguments: sqlx::IntoArguments<DB>,
{
    // A letter that stays, and what it blocks.
    let block = DeadHeadPolicy::Block;
    store.set_dead_head_policy("blocked", block).await.unwrap();
    for name in ["letter", "open"] {
        let event = event(name.as_bytes()).to("blocked").key("k");
        make.enqueue(conn, event.dedup_key(name)).await.unwrap();
        if name == "letter" {
            settle(store, 1, |_| dead()).await;
        }
    }
    let mut records = Vec::new();
    for n in 0..7 {
        let event = event(b"x").dedup_key(n.to_string());
        make.enqueue(conn, event).await.unwrap();
        settle(store, 1, |_| dead()).await;
        let letters = DeadLetterFilter::destination("somewhere");
        let letter = store.list(&letters, &Page::default()).await.unwrap();
        records.push(letter[0].event.seq);
        assert_eq!(store.discard(&letters, 10, "seen").await.unwrap(), 1);
        DB::age(conn, clock, HOUR).await;
    }
    make.enqueue(conn, event(b"published")).await.unwrap();
    settle(store, 1, |_| Outcome::Published).await;

    let mut prune = Prune::default();
    (prune.published_after, prune.dedup_after) = (None, None);
    prune.rows = 2;
    assert_eq!(store.prune(&prune).await.unwrap(), Pruned::default());
    assert_eq!(seqs::<DB>(conn, "discards").await, records);
    // The youngest two are one and two hours old.
    prune.published_after = Some(HOUR * 5 / 2);
    for left in [&records[2..], &records[4..], &records[5..], &records[5..]] {
        assert_eq!(store.prune(&prune).await.unwrap(), Pruned::default());
        assert_eq!(seqs::<DB>(conn, "discards").await, left);
    }

    let stats = store.stats(10).await.unwrap();
    let counts = [stats.pending, stats.dead, stats.blocked_keys];
    assert_eq!(counts.map(|count| count.value), [1; 3]);
    assert_eq!(seqs::<DB>(conn, "published").await.len(), 1);
    for known in ["letter", "open", "0", "6"] {
        let again = event(b"again").dedup_key(known);
        assert!(make.enqueue(conn, again).await.unwrap().duplicate);
    }
}

/// The numbers in a table.
async fn seqs<DB: Database>(conn: &mut DB::Connection, table: &str) -> Vec<i64>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> (i64,): sqlx::FromRow<'r, DB::Row>,
    for<'q> DB::Arguments: sqlx::IntoArguments<DB>,
{
    let query = AssertSqlSafe(format!("SELECT seq FROM outbox_{table} ORDER BY seq"));
    let rows: Vec<(i64,)> = sqlx::query_as(query).fetch_all(conn).await.unwrap();
    rows.into_iter().map(|(seq,)| seq).collect()
}

#[tokio::test]
async fn of_discards_ends_by_age_and_batches_on_postgres() {
    let clock = ManualClock::new();
    let (store, _, mut conn) = on_postgres(Retention::Keep).await;
    forgets_discards::<Postgres, _>(&store, &store, &mut conn, &clock).await;
    let (make, store, mut conn) = on_postgres(Retention::Keep).await;
    forgets_discards::<Postgres, _>(&store, &make, &mut conn, &clock).await;
}

#[tokio::test]
async fn of_discards_ends_by_age_and_batches_on_mysql() {
    let clock = ManualClock::new();
    let (store, _, mut conn) = on_mysql(Retention::Keep).await;
    forgets_discards::<MySql, _>(&store, &store, &mut conn, &clock).await;
    let (make, store, mut conn) = on_mysql(Retention::Keep).await;
    forgets_discards::<MySql, _>(&store, &make, &mut conn, &clock).await;
}

#[tokio::test]
async fn of_discards_ends_by_age_and_batches_on_sqlite() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let (store, _, mut conn) = on_sqlite(&folder, clock.clone(), Retention::Keep).await;
    forgets_discards::<Sqlite, _>(&store, &store, &mut conn, &clock).await;
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let (make, store, mut conn) = on_sqlite(&folder, clock.clone(), Retention::Keep).await;
    forgets_discards::<Sqlite, _>(&store, &make, &mut conn, &clock).await;
}
