//! Events in SQLite, destinations in a table beside them: from the row to the receiver.

mod support;

use std::sync::Arc;
use std::time::Duration;

use outbox_http::outbox_core::{
    Enqueue, Error, ErrorKind, Maintenance, NewEvent, Relay, TokioTimer, async_trait,
};
use outbox_http::{
    DestinationRecord, DestinationStore, GitHub, SecretText, StoredDestinations, Verifier,
};
use outbox_sqlx::SqliteStore;
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use support::{OK, Receiver, SECRET, builder};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

const TABLE: &str = "CREATE TABLE subscriptions (
    name TEXT PRIMARY KEY, url TEXT NOT NULL, secret TEXT NOT NULL, scheme TEXT NOT NULL, disabled TEXT)";

struct Subscriptions(SqlitePool);

type Row = (String, String, String, Option<String>);

#[async_trait]
impl DestinationStore for Subscriptions {
    async fn find(&self, destination: &str) -> Result<Option<DestinationRecord>, Error> {
        let query = "SELECT url, secret, scheme, disabled FROM subscriptions WHERE name = $1";
        let row: Option<Row> = sqlx::query_as(query)
            .bind(destination)
            .fetch_optional(&self.0)
            .await
            .map_err(|source| {
                Error::new(ErrorKind::Unavailable, "subscriptions can't be read")
                    .with_source(source)
            })?;
        let Some((url, secret, scheme, disabled)) = row else {
            return Ok(None);
        };
        let mut record = DestinationRecord::new(url);
        record.scheme = scheme.parse()?;
        record.secrets.push(SecretText::new("current", secret));
        record.disabled = disabled;
        Ok(Some(record))
    }
}

/// Waits until the condition holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        timeout(Duration::from_secs(20), waiting).await.is_ok(),
        "{what}"
    );
}

#[tokio::test]
async fn events_of_a_disabled_row_wait_and_flow_when_it_is_enabled() {
    let (receiver, mut seen) = Receiver::recording(OK).await;

    // One connection: a lookup must not need one that the relay holds.
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect("sqlite::memory:").await.unwrap();
    let store = SqliteStore::new(pool.clone()).unwrap();
    store.migrate().await.unwrap();
    sqlx::query(TABLE).execute(&pool).await.unwrap();
    for (name, disabled) in [("ci", Some("asked to stop")), ("mirror", None)] {
        sqlx::query("INSERT INTO subscriptions VALUES ($1, $2, $3, 'github', $4)")
            .bind(name)
            .bind(receiver.url())
            .bind(SECRET)
            .bind(disabled)
            .execute(&pool)
            .await
            .unwrap();
    }
    let mut tx = store.begin_immediate().await.unwrap();
    for (name, number) in [("ci", 1), ("mirror", 2), ("ci", 3), ("nobody", 4)] {
        let event = NewEvent::json("Pushed", &number).unwrap();
        store
            .enqueue(&mut tx, event.key("k").to(name))
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();

    let destinations = Arc::new(
        StoredDestinations::new(Subscriptions(pool.clone())).fresh_for(Duration::from_millis(50)),
    );
    let webhooks = builder()
        .destinations(destinations)
        .recheck_disabled(Duration::from_millis(50))
        .build()
        .unwrap();
    let relay = Relay::builder(store.clone(), webhooks, TokioTimer)
        .poll_interval(Duration::from_millis(20))
        .build()
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });

    assert_eq!(seen.recv().await.unwrap().body, b"2");
    until("the unknown destination's event is dead", async || {
        store.stats(100).await.unwrap().dead.value == 1
    })
    .await;
    let stats = store.stats(100).await.unwrap();
    assert_eq!(stats.pending.value, 2, "events of a disabled row stay");
    assert!(seen.try_recv().is_err());

    sqlx::query("UPDATE subscriptions SET disabled = NULL")
        .execute(&pool)
        .await
        .unwrap();
    for body in [b"1", b"3"] {
        let request = timeout(Duration::from_secs(20), seen.recv()).await;
        let request = request.unwrap().unwrap();
        assert_eq!(request.body, body);
        let scheme = GitHub::new(SECRET).unwrap();
        scheme.verify(&request.headers, &request.body).unwrap();
    }
    until("nothing is pending", async || {
        store.stats(100).await.unwrap().pending.value == 0
    })
    .await;
    drop(stop);
    let report = running.await.unwrap();
    assert_eq!((report.published, report.retried), (3, 0), "{report:?}");
}
