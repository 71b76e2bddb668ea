//! What is peculiar to `MySqlStore` of outbox-sqlx, on MariaDB or MySQL.

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::sql::TableNames;
use outbox_core::{ClaimRequest, Enqueue, ErrorKind, NewEvent, OutboxStore};
use outbox_sqlx::MySqlStore;
use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
use outbox_sqlx::sqlx::{self, MySqlPool};
use tests::MySqlServer;

async fn pool(connections: u32) -> MySqlPool {
    let url = MySqlServer::shared().create_database();
    let options = MySqlPoolOptions::new().max_connections(connections);
    options.connect(&url).await.expect("connected")
}

fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::MIN, Duration::from_secs(60))
}

#[tokio::test]
async fn many_may_migrate_at_once_into_any_database_and_prefix() {
    let names = TableNames::new("Out box").and_then(|names| names.schema("My-Schema"));
    let names = names.expect("names");
    let store = MySqlStore::new(pool(4).await).tables(names);
    let missing = store.claim(&request()).await.expect_err("no tables yet");
    assert_eq!(missing.kind(), ErrorKind::Schema, "{missing:?}");

    let (a, b, c) = tokio::join!(store.migrate(), store.migrate(), store.migrate());
    a.and(b).and(c).expect("migrated");
    store.check_schema().await.expect("of this version");

    let mut tx = store.pool().begin().await.expect("begun");
    let event = NewEvent::bytes("T", "x").to("d").key("k");
    store.enqueue(&mut tx, event).await.expect("stored");
    tx.commit().await.expect("committed");
    let claim = store.claim(&request()).await.expect("claimed");
    assert_eq!(claim.events.len(), 1);
    let released = store.release_claim(claim.events[0].lease.token).await;
    assert_eq!(released.expect("released"), 1);
}

#[tokio::test]
async fn a_dropped_call_leaves_no_transaction_on_a_pooled_connection() {
    let store = MySqlStore::new(pool(1).await);
    store.migrate().await.expect("migrated");
    for polls in 1..40 {
        let request = request();
        let mut claim = Box::pin(store.claim(&request));
        for _ in 0..polls {
            let once = std::future::poll_fn(|cx| std::task::Poll::Ready(claim.as_mut().poll(cx)));
            if once.await.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(claim);
        // Refused where a transaction is open.
        let free = sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            .execute(store.pool())
            .await;
        assert!(free.is_ok(), "after {polls} polls: {free:?}");
    }
}

#[tokio::test]
async fn the_time_zone_of_a_session_does_not_matter() {
    let store = MySqlStore::new(pool(1).await);
    store.migrate().await.expect("migrated");
    let mut tx = store.pool().begin().await.expect("begun");
    sqlx::query("SET time_zone = '+09:00'")
        .execute(&mut *tx)
        .await
        .expect("set");
    let event = NewEvent::bytes("T", "x").to("d");
    store.enqueue(&mut tx, event).await.expect("stored");
    tx.commit().await.expect("committed");
    let other = store.pool().acquire().await.expect("a connection").detach();
    let claim = store.claim(&request()).await.expect("claimed");
    drop(other);
    assert!(claim.events[0].age < Duration::from_secs(60));
}
