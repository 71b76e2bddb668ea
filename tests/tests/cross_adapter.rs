//! One table, two adapters: what outbox-sqlx enqueues, outbox-diesel relays, and back.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, AsyncPgConnection};
use outbox_core::{
    ClaimRequest, DeadLetterFilter, DeadLetters, DeathReason, Enqueue, Error, Event, LeaseStatus,
    Maintenance, NewEvent, OutboxStore, Outcome, Replay, Settlement,
};
use tests::{MySqlServer, PgServer};

/// An event with every field set, and a payload that is no text.
fn full(name: &str) -> NewEvent {
    NewEvent::bytes("Pushed", vec![0, 0xFF, b'\'', b'"'])
        .to("https://ci.example/hooks?a='b'")
        .content_type("application/x-test")
        .aggregate("repository", name)
        .key(name)
        .header(
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        )
        .header("x-note", "é\"")
        .dedup_key(name)
        .expires_in(Duration::from_secs(3_600))
        .max_attempts(7)
}

fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(10).unwrap(), Duration::from_secs(30))
}

fn assert_same(stored: &Event, new: &NewEvent) {
    assert_eq!(stored.id, new.event_id());
    assert_eq!(stored.event_type, new.event_type());
    assert_eq!(stored.destination, new.destination());
    assert_eq!(&stored.payload, new.payload());
    assert_eq!(stored.content_type, new.media_type());
    assert_eq!(stored.aggregate_type.as_deref(), new.aggregate_type());
    assert_eq!(stored.aggregate_id.as_deref(), new.aggregate_id());
    assert_eq!(stored.key.as_deref(), new.ordering_key());
    assert_eq!(&stored.headers, new.headers());
    assert_eq!(stored.dedup_key.as_deref(), new.dedup());
    assert_eq!(stored.max_attempts, new.attempt_limit());
    assert!(stored.expires_at > Some(stored.created_at));
}

/// Claims `event` through `one`, lets it die there, replays it through `other` and publishes it
/// there; a lease of one adapter counts at the other.
async fn goes_both_ways<A, B>(one: &A, other: &B, event: &NewEvent)
where
    A: OutboxStore + DeadLetters + Maintenance,
    B: OutboxStore + DeadLetters + Maintenance,
{
    let claim = one.claim(&request()).await.unwrap();
    assert_eq!(claim.events.len(), 1);
    assert_same(&claim.events[0].event, event);
    let lease = claim.events[0].lease;
    assert!(other.claim(&request()).await.unwrap().events.is_empty());
    let extended = other
        .extend(&[lease], Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(extended, [LeaseStatus::Ours]);
    let dead = Outcome::Dead {
        reason: DeathReason::Gone,
        error: "410 Gone".into(),
    };
    let settled = one.settle(&[Settlement::new(lease, dead)]).await.unwrap();
    assert_eq!(settled, [LeaseStatus::Ours]);

    let letter = other.get(lease.seq).await.unwrap().unwrap();
    assert_eq!(letter.reason, DeathReason::Gone);
    assert_same(&letter.event, event);
    let replay = Replay::new(DeadLetterFilter::id(event.event_id()));
    assert_eq!(other.replay(&replay).await.unwrap(), 1);
    let claim = other.claim(&request()).await.unwrap();
    assert_eq!(claim.events[0].event.replays, 1);
    assert_eq!(claim.events[0].lease.seq, lease.seq);
    let published = Settlement::new(claim.events[0].lease, Outcome::Published);
    let settled = other.settle(&[published]).await.unwrap();
    assert_eq!(settled, [LeaseStatus::Ours]);
    let stats = one.stats(100).await.unwrap();
    assert_eq!((stats.pending.value, stats.dead.value), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_events_go_from_either_adapter_to_the_other() {
    let url = PgServer::shared().create_database();
    let sqlx_pool = sqlx::PgPool::connect(&url).await.unwrap();
    let by_sqlx = outbox_sqlx::PgStore::new(sqlx_pool.clone());
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
    let diesel_pool = Pool::builder(manager).max_size(2).build().unwrap();
    let by_diesel = outbox_diesel::PgStore::new(diesel_pool.clone());
    by_diesel.migrate().await.unwrap();
    by_sqlx.migrate().await.unwrap();
    by_diesel.check_schema().await.unwrap();

    let mut conn = diesel_pool.get().await.unwrap();
    servers_events_go_both_ways(&sqlx_pool, &by_sqlx, &mut *conn, &by_diesel).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_events_go_from_either_adapter_to_the_other() {
    let url = MySqlServer::shared().create_database();
    let sqlx_pool = sqlx::MySqlPool::connect(&url).await.unwrap();
    let by_sqlx = outbox_sqlx::MySqlStore::new(sqlx_pool.clone());
    let manager = AsyncDieselConnectionManager::<AsyncMysqlConnection>::new(url);
    let diesel_pool = Pool::builder(manager).max_size(2).build().unwrap();
    let by_diesel = outbox_diesel::MySqlStore::new(diesel_pool.clone());
    by_diesel.migrate().await.unwrap();
    by_sqlx.migrate().await.unwrap();
    by_diesel.check_schema().await.unwrap();

    let mut conn = diesel_pool.get().await.unwrap();
    servers_events_go_both_ways(&sqlx_pool, &by_sqlx, &mut *conn, &by_diesel).await;
}

/// Enqueues through either adapter, and relays through the other one.
async fn servers_events_go_both_ways<DB, A, C, B>(
    sqlx_pool: &sqlx::Pool<DB>,
    by_sqlx: &A,
    conn: &mut C,
    by_diesel: &B,
) where
    DB: sqlx::Database,
    A: OutboxStore + DeadLetters + Maintenance + Enqueue<DB::Connection>,
    C: AsyncConnection,
    B: OutboxStore + DeadLetters + Maintenance + Enqueue<C>,
{
    let event = full("from sqlx");
    let mut tx = sqlx_pool.begin().await.unwrap();
    by_sqlx.enqueue(&mut tx, event.clone()).await.unwrap();
    tx.commit().await.unwrap();
    goes_both_ways(by_diesel, by_sqlx, &event).await;

    let event = full("from diesel");
    conn.transaction::<_, Failure, _>(async |conn| {
        by_diesel.enqueue(conn, event.clone()).await?;
        Ok(())
    })
    .await
    .unwrap();
    // The key is taken, whichever adapter asks.
    let again = NewEvent::bytes("T", "x").to("d").dedup_key("from diesel");
    let mut tx = sqlx_pool.begin().await.unwrap();
    let answer = by_sqlx.enqueue(&mut tx, again.clone()).await.unwrap();
    assert!(answer.duplicate && answer.id == event.event_id());
    tx.rollback().await.unwrap();
    let answer = by_diesel.enqueue(conn, again).await.unwrap();
    assert!(answer.duplicate && answer.id == event.event_id());
    goes_both_ways(by_sqlx, by_diesel, &event).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_events_go_from_either_adapter_to_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outbox.db");
    let by_sqlx = outbox_sqlx::SqliteStore::connect(&path).await.unwrap();
    let diesel_pool = sqlite_pool(&path);
    let by_diesel = outbox_diesel::SqliteStore::new(diesel_pool.clone()).unwrap();
    by_diesel.migrate().await.unwrap();
    by_sqlx.migrate().await.unwrap();

    let event = full("from sqlx");
    let mut tx = by_sqlx.begin_immediate().await.unwrap();
    by_sqlx.enqueue(&mut tx, event.clone()).await.unwrap();
    tx.commit().await.unwrap();
    goes_both_ways(&by_diesel, &by_sqlx, &event).await;

    let event = full("from diesel");
    let mut conn = diesel_pool.get().await.unwrap();
    conn.immediate_transaction::<_, Failure, _>(async |conn| {
        by_diesel.enqueue(conn, event.clone()).await?;
        Ok(())
    })
    .await
    .unwrap();
    goes_both_ways(&by_sqlx, &by_diesel, &event).await;
}

fn sqlite_pool(path: &Path) -> Pool<SyncConnectionWrapper<diesel::SqliteConnection>> {
    let mut config = ManagerConfig::default();
    config.custom_setup =
        Box::new(|path| Box::pin(outbox_diesel::SqliteStore::open(path.to_owned())));
    let path = path.display().to_string();
    let manager = AsyncDieselConnectionManager::new_with_config(path, config);
    Pool::builder(manager).max_size(2).build().unwrap()
}

/// What a producer's transaction fails with.
#[derive(Debug)]
#[expect(dead_code, reason = "shown where a test fails")]
enum Failure {
    Outbox(Error),
    Database(diesel::result::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Outbox(error)
    }
}

impl From<diesel::result::Error> for Failure {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error)
    }
}
