//! A claim that brings nothing tells when the next event falls due.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

#[path = "harness/open.rs"]
mod open;

use std::num::NonZeroU32;
use std::time::Duration;

use open::Open;
use outbox_core::{ClaimRequest, Destinations, Enqueue, Hold, NewEvent, OutboxStore};
use outbox_sqlx::{MySqlStore, PgStore, SqliteStore};

const MINUTE: Duration = Duration::from_secs(60);

async fn next_due(store: &impl OutboxStore) -> Option<Duration> {
    let request = ClaimRequest::new(NonZeroU32::new(10).unwrap(), MINUTE);
    let claim = store.claim(&request).await.unwrap();
    assert!(claim.events.is_empty(), "{:?}", claim.events);
    claim.next_due
}

fn about(due: Option<Duration>, minutes: u32) {
    let due = due.expect("a time");
    assert!(due <= minutes * MINUTE + Duration::from_secs(1), "{due:?}");
    assert!(due > (minutes - 1) * MINUTE, "{due:?}");
}

async fn is_told<C, S>(store: &S, conn: &mut C)
where
    S: Enqueue<C> + OutboxStore + Destinations,
{
    let event = || NewEvent::bytes("T", "x").to("d");
    assert_eq!(next_due(store).await, None);
    store
        .enqueue(conn, event().key("k").delay(30 * MINUTE))
        .await
        .unwrap();
    about(next_due(store).await, 30);
    store
        .enqueue(conn, event().delay(20 * MINUTE))
        .await
        .unwrap();
    about(next_due(store).await, 20);
    let hold = Hold::For {
        period: 10 * MINUTE,
        reason: "a test".to_owned(),
    };
    store.hold("d", hold).await.unwrap();
    store.enqueue(conn, event()).await.unwrap();
    about(next_due(store).await, 10);
}

#[tokio::test]
async fn is_told_by_postgres() {
    let (store, mut conn, _) = PgStore::open().await;
    is_told(&store, &mut *conn).await;
}

#[tokio::test]
async fn is_told_by_mysql() {
    let (store, mut conn, _) = MySqlStore::open().await;
    is_told(&store, &mut *conn).await;
}

#[tokio::test]
async fn is_told_by_sqlite() {
    let (store, mut conn, _folder) = SqliteStore::open().await;
    is_told(&store, &mut *conn).await;
}
