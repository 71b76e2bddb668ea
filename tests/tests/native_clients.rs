//! Enqueues through diesel's plain connections on the databases' own client libraries. (`enqueue_sync`
//! needs none of them; other tests use connections without.)
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

use std::num::NonZeroU32;
use std::time::Duration;

use diesel::{Connection, MysqlConnection, PgConnection, SqliteConnection};
use outbox_core::{ClaimRequest, Enqueued, Error, ErrorKind, Maintenance, NewEvent, OutboxStore};
use tests::{MySqlServer, PgServer};

fn event() -> NewEvent {
    NewEvent::bytes("T", vec![0, 0xFF, b'\'', b'\\']).to("d")
}

fn full() -> NewEvent {
    event()
        .key("ключ")
        .aggregate("repository", 7)
        .content_type("application/x-test")
        .header("x-note", "é\"")
        .dedup_key("once")
        .expires_in(Duration::from_secs(3_600))
        .max_attempts(3)
}

/// Stores events of all kinds by `enqueue`, and finds them by `store`.
async fn stores_all<C: Connection>(
    conn: &mut C,
    enqueue: impl Fn(&mut C, &[NewEvent]) -> Result<Vec<Enqueued>, Error>,
    store: &(impl OutboxStore + Maintenance),
) {
    let full = full();
    let rolled_back = conn.transaction::<(), diesel::result::Error, _>(|conn| {
        enqueue(conn, std::slice::from_ref(&full)).unwrap();
        Err(diesel::result::Error::RollbackTransaction)
    });
    assert!(rolled_back.is_err());
    let stored = conn.transaction::<_, diesel::result::Error, _>(|conn| {
        Ok(enqueue(conn, std::slice::from_ref(&full)).unwrap())
    });
    assert!(!stored.unwrap()[0].duplicate);
    let claim = store.claim(&request()).await.unwrap();
    let got = &claim.events[0].event;
    assert_eq!((got.id, &got.payload), (full.event_id(), full.payload()));
    assert_eq!(
        (&got.headers, &got.key),
        (full.headers(), &Some("ключ".to_owned()))
    );
    assert_eq!(
        (&got.dedup_key, got.max_attempts),
        (&Some("once".to_owned()), Some(3))
    );

    // Thousands, a third of them with keys, each key twice.
    let one = |n: usize| match n % 3 {
        0 => event().dedup_key((n % 3_000).to_string()).key(n % 7),
        _ => event(),
    };
    let many: Vec<NewEvent> = (0..6_000).map(one).collect();
    let answers = enqueue(conn, &many).unwrap();
    let duplicates = answers.iter().filter(|answer| answer.duplicate).count();
    assert_eq!(duplicates, 1_000);
    let large = NewEvent::bytes("T", vec![b'\''; 1 << 20]).to("d");
    enqueue(
        conn,
        &[large.clone(), event().delay(Duration::from_secs(60))],
    )
    .unwrap();
    let pending = store.stats(10_000).await.unwrap().pending.value;
    assert_eq!(pending, 1 + 5_000 + 2);

    let taken = enqueue(conn, &[large]).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::InvalidEvent, "{taken:?}");
}

fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::MIN, Duration::from_secs(60))
}

#[tokio::test]
async fn libpq_stores_all() {
    let url = PgServer::shared().create_database();
    let store = outbox_sqlx::PgStore::new(sqlx::PgPool::connect(&url).await.unwrap());
    store.migrate().await.unwrap();
    let mut conn = PgConnection::establish(&url).unwrap();
    let outbox = outbox_diesel::PgStore::enqueue_only();
    stores_all(
        &mut conn,
        |conn, list| outbox.enqueue_all_sync(conn, list),
        &store,
    )
    .await;
}

#[tokio::test]
async fn the_client_of_mariadb_stores_all() {
    let url = MySqlServer::shared().create_database();
    let store = outbox_sqlx::MySqlStore::new(sqlx::MySqlPool::connect(&url).await.unwrap());
    store.migrate().await.unwrap();
    let mut conn = MysqlConnection::establish(&url).unwrap();
    let outbox = outbox_diesel::MySqlStore::enqueue_only();
    stores_all(
        &mut conn,
        |conn, list| outbox.enqueue_all_sync(conn, list),
        &store,
    )
    .await;
}

#[tokio::test]
async fn sqlite_stores_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = outbox_sqlx::SqliteStore::connect(&path).await.unwrap();
    store.migrate().await.unwrap();
    let mut conn = SqliteConnection::establish(&path.display().to_string()).unwrap();
    outbox_diesel::SqliteStore::set_up(&mut conn).unwrap();
    let outbox = outbox_diesel::SqliteStore::enqueue_only().unwrap();
    stores_all(
        &mut conn,
        |conn, list| outbox.enqueue_all_sync(conn, list),
        &store,
    )
    .await;
}
