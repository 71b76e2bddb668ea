//! A relay whose pool has no connection for it.

use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use outbox_core::{
    Backoff, Delivery, DeliveryError, Enqueue, NewEvent, Observer, Receipt, Relay, TokioTimer,
    Transition, Transport, async_trait,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use std::sync::Arc;
use tests::PgServer;

const EVENTS: usize = 50;

/// Says when the store is down for the first time, and how often it was told.
#[derive(Default)]
struct Outages {
    first: Mutex<Option<oneshot::Sender<()>>>,
    told: Mutex<Vec<&'static str>>,
}

impl Observer for Outages {
    fn on(&self, transition: &Transition<'_>) {
        let what = match transition {
            Transition::StoreDown { .. } => "down",
            Transition::StoreUp { .. } => "up",
            _ => return,
        };
        self.told.lock().expect("not poisoned").push(what);
        let first = self.first.lock().expect("not poisoned").take();
        first.map(|first| first.send(()));
    }
}

struct Counted(Mutex<(usize, Option<oneshot::Sender<()>>)>);

#[async_trait]
impl Transport for Counted {
    async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
        let mut counted = self.0.lock().expect("not poisoned");
        counted.0 += 1;
        if counted.0 == EVENTS {
            counted.1.take().map(|done| done.send(()));
        }
        Ok(Receipt::new())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_is_an_outage_that_ends_by_itself() {
    let url = PgServer::shared().create_database();
    let options = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(100));
    let pool = options.connect(&url).await.expect("connected");
    let store = PgStore::new(pool.clone());
    store.migrate().await.expect("migrated");
    let mut conn = pool.acquire().await.expect("acquired");
    let events = (0..EVENTS).map(|n| NewEvent::bytes("T", "x").to("d").key(n % 3));
    let stored = store.enqueue_all(&mut *conn, events.collect()).await;
    stored.expect("stored");

    let (down, is_down) = oneshot::channel();
    let (done, is_done) = oneshot::channel();
    let outages = Arc::new(Outages::default());
    *outages.first.lock().expect("not poisoned") = Some(down);
    let transport = Counted(Mutex::new((0, Some(done))));
    let relay = Relay::builder(store, transport, TokioTimer)
        .retry(Backoff::exponential())
        .store_backoff(Duration::from_millis(10), Duration::from_millis(50))
        .observer(Arc::clone(&outages))
        .build()
        .expect("valid");
    // The one connection is kept until the relay has felt it.
    let freeing = async {
        is_down.await.expect("told");
        drop(conn);
    };
    let (report, ()) = tokio::join!(relay.run(is_done.map(drop)), freeing);
    assert_eq!((report.published, report.abandoned), (50, 0));
    let told = outages.told.lock().expect("not poisoned");
    assert_eq!(*told, ["down", "up"]);
}
