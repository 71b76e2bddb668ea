//! A server that is killed while relays work, and comes back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use outbox_core::{
    Delivery, DeliveryError, Enqueue, NewEvent, Receipt, Relay, TokioTimer, Transport, async_trait,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use tests::PgServer;

const EVENTS: usize = 2_000;
const KEYS: usize = 20;

/// How often each event came, and the order in which the events of each key came first.
#[derive(Default)]
struct Seen {
    times: HashMap<usize, usize>,
    first: HashMap<String, Vec<usize>>,
}

#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Seen>>);

#[async_trait]
impl Transport for Receiver {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let event = delivery.event();
        let n: usize = String::from_utf8_lossy(&event.payload)
            .parse()
            .expect("a number");
        let mut seen = self.0.lock().expect("not poisoned");
        let times = seen.times.entry(n).or_default();
        *times += 1;
        if *times == 1 {
            let key = event.key.clone().expect("a key");
            seen.first.entry(key).or_default().push(n);
        }
        Ok(Receipt::new())
    }
}

impl Receiver {
    /// Waits until so many events have come.
    async fn has(&self, events: usize) {
        let wait = async {
            while self.0.lock().expect("not poisoned").times.len() < events {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(120), wait).await;
        assert!(
            waited.is_ok(),
            "{} of {events}",
            self.0.lock().expect("not poisoned").times.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_comes_in_order_though_the_server_is_killed_under_load() {
    let server = PgServer::start_with(&["fsync=on", "synchronous_commit=on"]);
    let url = server.create_database();
    let options = PgPoolOptions::new().acquire_timeout(Duration::from_secs(1));
    let store = PgStore::new(options.connect(&url).await.expect("connected"));
    store.migrate().await.expect("migrated");
    let mut conn = store.pool().acquire().await.expect("acquired");
    let event = |n: usize| NewEvent::bytes("T", n.to_string()).to("d").key(n % KEYS);
    let stored = store.enqueue_all(&mut *conn, (0..EVENTS).map(event).collect());
    stored.await.expect("stored");
    drop(conn);

    let receiver = Receiver::default();
    let relay = Relay::builder(store, receiver.clone(), TokioTimer)
        .per_destination(64)
        .lease(Duration::from_secs(4))
        .delivery_timeout(Duration::from_secs(2))
        .store_backoff(Duration::from_millis(20), Duration::from_millis(200))
        .poll_interval(Duration::from_millis(200))
        .build()
        .expect("valid");
    let (stop, stopped) = futures::channel::oneshot::channel::<()>();
    let running = tokio::spawn({
        let relay = relay.clone();
        async move { relay.run(stopped.map(|_| ())).await }
    });
    for round in 1..=2 {
        receiver.has(EVENTS * round / 3).await;
        server.kill();
        server.resume();
    }
    receiver.has(EVENTS).await;
    drop(stop);
    running.await.expect("no panic");
    relay.run_until_idle().await.expect("idle");

    let seen = receiver.0.lock().expect("not poisoned");
    assert_eq!(seen.times.len(), EVENTS);
    assert_eq!(seen.first.len(), KEYS);
    for (key, order) in &seen.first {
        assert!(order.is_sorted(), "{key}: {order:?}");
    }
    let repeats = seen.times.values().sum::<usize>() - EVENTS;
    assert!(repeats < EVENTS / 2, "{repeats} repeats");
}
