//! What `outbox_diesel::PgStore` promises beyond the conformance suite.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel::connection::{Connection, InstrumentationEvent};
use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection, pooled_connection};
use futures::FutureExt;
use outbox_core::{
    ClaimRequest, Enqueue, Error, ErrorKind, LeaseStatus, Maintenance, NewEvent, OutboxStore,
    Outcome, Settlement,
};
use outbox_diesel::{Connections, Loan, PgStore};
use tests::PgServer;

fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(10).unwrap(), Duration::from_secs(30))
}

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("somewhere")
}

fn manager(url: String) -> AsyncDieselConnectionManager<AsyncPgConnection> {
    AsyncDieselConnectionManager::new(url)
}

async fn migrated() -> String {
    let url = PgServer::shared().create_database();
    deadpool(&url, 1).migrate().await.unwrap();
    url
}

fn deadpool(url: &str, size: usize) -> PgStore {
    let pool = pooled_connection::deadpool::Pool::builder(manager(url.to_owned()));
    PgStore::new(pool.max_size(size).build().unwrap())
}

async fn deliver_one(store: &PgStore) {
    let claim = store.claim(&request()).await.unwrap();
    assert_eq!(claim.events.len(), 1);
    let settlement = Settlement::new(claim.events[0].lease, Outcome::Published);
    let settled = store.settle(&[settlement]).await.unwrap();
    assert_eq!(settled, [LeaseStatus::Ours]);
}

#[tokio::test]
async fn a_bb8_pool_with_one_connection_serves_producer_and_relay() {
    let url = migrated().await;
    let pool = pooled_connection::bb8::Pool::builder().max_size(1);
    let pool = pool.build(manager(url)).await.unwrap();
    let store = PgStore::new(pool.clone());
    let mut conn = pool.get().await.unwrap();
    store.enqueue(&mut conn, event()).await.unwrap();
    drop(conn);
    deliver_one(&store).await;
}

#[tokio::test]
async fn plain_connections_enqueue_in_their_own_transaction() {
    let url = migrated().await;
    let path = url.clone();
    let answers = tokio::task::spawn_blocking(move || plain(&path))
        .await
        .unwrap();
    assert_eq!(
        answers.iter().map(|one| one.duplicate).collect::<Vec<_>>(),
        [false, true, false]
    );
    let stats = deadpool(&url, 1).stats(100).await.unwrap();
    assert_eq!(stats.pending.value, 2);
}

/// Enqueues through a plain `Connection` that needs no libpq.
fn plain(url: &str) -> Vec<outbox_core::Enqueued> {
    type Plain = AsyncConnectionWrapper<AsyncPgConnection>;
    type Failure = diesel::result::Error;

    let mut conn = <Plain as Connection>::establish(url).unwrap();
    let outbox = PgStore::enqueue_only();
    let rolled_back = Connection::transaction::<(), Failure, _>(&mut conn, |conn| {
        outbox.enqueue_sync(conn, &event()).unwrap();
        Err(Failure::RollbackTransaction)
    });
    assert!(rolled_back.is_err());
    let keyed = [event().dedup_key("k"), event().dedup_key("k"), event()];
    let stored = Connection::transaction::<_, Failure, _>(&mut conn, |conn| {
        Ok(outbox.enqueue_all_sync(conn, &keyed).unwrap())
    });
    stored.unwrap()
}

#[tokio::test]
async fn a_store_without_a_pool_says_so() {
    let refused = PgStore::enqueue_only().claim(&request()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn statements_are_prepared_once_for_each_connection() {
    let url = migrated().await;
    let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
    let prepared = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&prepared);
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::CacheQuery { sql, .. } = event {
            seen.lock().unwrap().push(sql.to_owned());
        }
    });
    let outbox = PgStore::enqueue_only();
    for _ in 0..3 {
        outbox.enqueue(&mut conn, event()).await.unwrap();
        let many = vec![event(), event().dedup_key("k")];
        outbox.enqueue_all(&mut conn, many).await.unwrap();
    }
    assert_eq!(prepared.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn dropped_calls_leave_the_only_connection_in_order() {
    let url = migrated().await;
    let store = deadpool(&url, 1);
    let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
    store.enqueue(&mut conn, event()).await.unwrap();
    store.claim(&request()).await.unwrap();
    conn.batch_execute("UPDATE outbox_events SET lease_until = now() - interval '1 second'")
        .await
        .unwrap();
    // Each is polled so often, then dropped.
    for polls in 0..12 {
        let cut = request();
        let mut claim = store.claim(&cut);
        for _ in 0..polls {
            if (&mut claim).now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(claim);
        store.release_claim(cut.token).await.unwrap();
    }
    deliver_one(&store).await;
}

#[tokio::test]
async fn missing_tables_are_reported_with_the_call_that_makes_them() {
    let url = PgServer::shared().create_database();
    let store = deadpool(&url, 1);
    for error in [
        store.claim(&request()).await.unwrap_err(),
        store.check_schema().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Schema, "{error:?}");
        assert!(error.to_string().contains("PgStore::migrate"), "{error}");
    }
}

#[tokio::test]
async fn many_processes_migrate_at_once() {
    let url = PgServer::shared().create_database();
    let stores: Vec<PgStore> = (0..6).map(|_| deadpool(&url, 1)).collect();
    let all = stores.iter().map(PgStore::migrate);
    for migrated in futures::future::join_all(all).await {
        migrated.unwrap();
    }
    stores[0].check_schema().await.unwrap();
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let error = deadpool("postgres://nobody@127.0.0.1:1/none", 1)
        .claim(&request())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_killed_connection_is_unavailable_once_and_then_replaced() {
    let url = migrated().await;
    let mut config = pooled_connection::ManagerConfig::default();
    config.recycling_method = pooled_connection::RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url.clone(), config);
    let pool = pooled_connection::deadpool::Pool::builder(manager).max_size(1);
    let store = PgStore::new(pool.build().unwrap());
    store.claim(&request()).await.unwrap();
    let mut killer = AsyncPgConnection::establish(&url).await.unwrap();
    killer
        .batch_execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await
        .unwrap();
    let mut failures = Vec::new();
    while let Err(error) = store.claim(&request()).await {
        failures.push(error.kind());
        assert!(failures.len() < 3, "{error:?}");
    }
    assert!(
        failures.iter().all(|kind| *kind == ErrorKind::Unavailable),
        "{failures:?}"
    );
}

#[tokio::test]
async fn a_pool_of_the_users_own_serves() {
    struct Fresh(String);

    #[outbox_core::async_trait]
    impl Connections<AsyncPgConnection> for Fresh {
        async fn connection(&self) -> Result<Loan<AsyncPgConnection>, Error> {
            let conn = AsyncPgConnection::establish(&self.0).await.unwrap();
            Ok(Box::new(Box::new(conn)))
        }
    }

    let url = migrated().await;
    let store = PgStore::new(Fresh(url.clone()));
    let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
    store.enqueue(&mut conn, event()).await.unwrap();
    deliver_one(&store).await;
}
