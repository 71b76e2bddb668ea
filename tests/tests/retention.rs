//! What becomes of published events, on every store: the history keeps them whole until it is pruned,
//! or they are deleted at once. Dead letters and de-duplication keys stay either way.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

#[path = "harness/at.rs"]
mod at;

use std::num::NonZeroU32;
use std::time::Duration;

use at::At;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use outbox_core::{
    ClaimRequest, DeadLetterFilter, DeadLetters, DeathReason, Enqueue, Maintenance, NewEvent,
    OutboxStore, Outcome, Prune, Replay, Retention, Settlement,
};
use outbox_sqlx::sqlx::{self, Database, Executor};
use tests::{MySqlServer, PgServer};

fn event(payload: &[u8]) -> NewEvent {
    NewEvent::bytes("T", payload.to_vec()).to("somewhere")
}

/// Claims `count` events and settles each as `outcome` says.
async fn settle(store: &impl OutboxStore, count: usize, outcome: impl Fn(&[u8]) -> Outcome) {
    let mut settled = 0;
    while settled < count {
        let rows = NonZeroU32::new(10).unwrap();
        let request = ClaimRequest::new(rows, Duration::from_secs(60));
        let claim = store.claim(&request).await.unwrap();
        let settle = |claimed: &outbox_core::Claimed| {
            Settlement::new(claimed.lease, outcome(&claimed.event.payload))
        };
        let batch: Vec<_> = claim.events.iter().map(settle).collect();
        settled += store.settle(&batch).await.unwrap().len();
    }
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
        b"dead" => Outcome::Dead {
            reason: DeathReason::Gone,
            error: "410".to_owned(),
        },
        _ => Outcome::Published,
    };
    settle(store, 4, dies).await;
    let stats = store.stats(10).await.unwrap();
    assert_eq!((stats.pending.value, stats.dead.value), (0, 1));
    let replay = Replay::new(DeadLetterFilter::all());
    assert_eq!(store.replay(&replay).await.unwrap(), 1);
    settle(store, 1, |_| Outcome::Published).await;

    let history = sqlx::query_as("SELECT payload FROM outbox_published ORDER BY seq");
    let history: Vec<(Vec<u8>,)> = history.fetch_all(&mut *conn).await.unwrap();
    let history: Vec<Vec<u8>> = history.into_iter().map(|(payload,)| payload).collect();
    let all: [&[u8]; 4] = [b"a\0\xff", b"b", b"dead", b"c"];
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
}

const BOTH: [Retention; 2] = [Retention::Keep, Retention::DeleteAtOnce];

#[tokio::test]
async fn is_kept_to_on_postgres() {
    for retention in BOTH {
        let url = PgServer::shared().create_database();
        let store = outbox_sqlx::PgStore::at(&url, 2, retention).await;
        let mut conn = store.pool().acquire().await.unwrap();
        publishes::<sqlx::Postgres, _>(&store, &store, &mut conn, retention).await;
        let diesel = outbox_diesel::PgStore::at(&url, 1, retention).await;
        publishes::<sqlx::Postgres, _>(&diesel, &store, &mut conn, retention).await;
    }
}

#[tokio::test]
async fn is_kept_to_on_mysql() {
    for retention in BOTH {
        let url = MySqlServer::shared().create_database();
        let store = outbox_sqlx::MySqlStore::at(&url, 2, retention).await;
        let mut conn = store.pool().acquire().await.unwrap();
        publishes::<sqlx::MySql, _>(&store, &store, &mut conn, retention).await;
        let diesel = outbox_diesel::MySqlStore::at(&url, 1, retention).await;
        publishes::<sqlx::MySql, _>(&diesel, &store, &mut conn, retention).await;
    }
}

#[tokio::test]
async fn is_kept_to_on_sqlite() {
    for retention in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let store = outbox_sqlx::SqliteStore::connect(&path).await.unwrap();
        let store = store.retention(retention);
        store.migrate().await.unwrap();
        let mut conn = store.pool().acquire().await.unwrap();
        publishes::<sqlx::Sqlite, _>(&store, &store, &mut conn, retention).await;
        let mut config = ManagerConfig::default();
        config.custom_setup =
            Box::new(|path| Box::pin(outbox_diesel::SqliteStore::open(path.to_owned())));
        let path = path.display().to_string();
        let manager =
            AsyncDieselConnectionManager::<SyncConnectionWrapper<_>>::new_with_config(path, config);
        let pool = Pool::builder(manager).max_size(1).build().unwrap();
        let diesel = outbox_diesel::SqliteStore::new(pool).unwrap();
        let diesel = diesel.retention(retention);
        publishes::<sqlx::Sqlite, _>(&diesel, &store, &mut conn, retention).await;
    }
}
