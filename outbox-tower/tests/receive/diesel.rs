//! Keys and inbox in the store on diesel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post as on_post;
use diesel::SqliteConnection;
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use futures::poll;
use http::StatusCode;
use outbox_core::{Accepted, Inbox, ManualClock};
use outbox_diesel::SqliteStore;
use outbox_tower::receive::{IdempotencyLayer, Received, VerifyLayer};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::support::{ByHeader, SECOND, post, send, text};

const KEY: (&str, &str) = ("idempotency-key", "\"8e03978e\"");

type Connections = Pool<SyncConnectionWrapper<SqliteConnection>>;

async fn open(clock: &ManualClock) -> (SqliteStore, Connections, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = ManagerConfig::default();
    config.custom_setup = Box::new(|path| Box::pin(SqliteStore::open(path.to_owned())));
    let path = folder.path().join("app.db").display().to_string();
    let manager = AsyncDieselConnectionManager::new_with_config(path, config);
    let pool: Connections = Pool::builder(manager).build().unwrap();
    let store = SqliteStore::new(pool.clone()).unwrap().clock(clock.clone());
    store.migrate().await.unwrap();
    (store, pool, folder)
}

#[tokio::test]
async fn a_key_is_busy_then_free_when_its_lease_ends_then_answered() {
    let clock = ManualClock::new();
    let (store, _, _folder) = open(&clock).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Semaphore::new(0));
    let handler = (Arc::clone(&runs), Arc::clone(&gate));
    let run = || async move {
        let (runs, gate) = handler;
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        gate.acquire().await.unwrap().forget();
        format!("run {run}")
    };
    let router = Router::new().route("/", on_post(run));
    let app = router.layer(IdempotencyLayer::new(store).lease(30 * SECOND));

    let mut crashed = Box::pin(send(&app, post(&[KEY], "abc")));
    while runs.load(Ordering::SeqCst) == 0 {
        assert!(poll!(&mut crashed).is_pending());
        tokio::task::yield_now().await;
    }
    drop(crashed);
    clock.advance(28 * SECOND);
    let busy = send(&app, post(&[KEY], "abc")).await;
    assert_eq!(busy.status(), StatusCode::CONFLICT);
    assert_eq!(busy.headers()["retry-after"], "2");
    clock.advance(2 * SECOND);
    gate.add_permits(1);
    for _ in 0..2 {
        let answer = send(&app, post(&[KEY], "abc")).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(text(answer).await, "run 2");
    }
    let other = send(&app, post(&[KEY], "abd")).await;
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// Counts effects by a table of the same database; the first run rolls back.
async fn pushed(
    State((store, pool, runs)): State<(SqliteStore, Connections, Arc<AtomicUsize>)>,
    message: Received,
) -> StatusCode {
    let mut conn = pool.get().await.unwrap();
    let begin = |conn: &mut SqliteConnection| {
        AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN IMMEDIATE")
    };
    conn.spawn_blocking(begin).await.unwrap();
    if store.accept(&mut *conn, &message).await.unwrap() == Accepted::First {
        let effect = |conn: &mut SqliteConnection| {
            conn.batch_execute("INSERT INTO effect VALUES ('pushed')")
        };
        conn.spawn_blocking(effect).await.unwrap();
    }
    if runs.fetch_add(1, Ordering::SeqCst) == 0 {
        let rollback = AnsiTransactionManager::rollback_transaction;
        conn.spawn_blocking(rollback).await.unwrap();
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    let commit = AnsiTransactionManager::commit_transaction;
    conn.spawn_blocking(commit).await.unwrap();
    StatusCode::NO_CONTENT
}

#[tokio::test]
async fn effect_and_de_duplication_commit_together_or_not_at_all() {
    let (store, pool, _folder) = open(&ManualClock::new()).await;
    let create = |conn: &mut SqliteConnection| {
        conn.batch_execute("CREATE TABLE effect (what TEXT NOT NULL)")
    };
    let mut conn = pool.get().await.unwrap();
    conn.spawn_blocking(create).await.unwrap();
    let app = Router::new()
        .route("/", on_post(pushed))
        .layer(VerifyLayer::new(ByHeader))
        .with_state((store, pool, Arc::default()));
    let headers = [("x-signature", "good"), ("webhook-id", "m1")];
    for expected in [500, 204, 204, 204] {
        assert_eq!(send(&app, post(&headers, "a")).await.status(), expected);
    }
    let count = |conn: &mut SqliteConnection| {
        use diesel::prelude::*;
        let count = diesel::dsl::sql::<diesel::sql_types::BigInt>("count(*) FROM effect");
        diesel::select(count).get_result::<i64>(conn)
    };
    assert_eq!(conn.spawn_blocking(count).await.unwrap(), 1);
}
