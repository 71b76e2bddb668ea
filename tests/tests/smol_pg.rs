//! The relay, the store and its wake-ups on a runtime that is not tokio.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use outbox_core::{
    Delivery, DeliveryError, Enqueue, NewEvent, Receipt, Relay, SmolSpawn, SmolTimer, Transport,
    async_trait,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::PgPool;
use tests::PgServer;

/// Says when the last event was delivered.
struct Until {
    left: Mutex<(u32, Option<oneshot::Sender<()>>)>,
}

#[async_trait]
impl Transport for Until {
    async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
        smol::Timer::after(Duration::from_millis(1)).await;
        let mut left = self.left.lock().expect("not poisoned");
        left.0 -= 1;
        if left.0 == 0 {
            left.1.take().map(|done| done.send(()));
        }
        Ok(Receipt::new())
    }
}

async fn put(store: &PgStore, events: u32) {
    let event = |n: u32| NewEvent::bytes("T", "x").to("somewhere").key(n % 7);
    let mut tx = store.pool().begin().await.expect("begun");
    let stored = store.enqueue_all(&mut *tx, (0..events).map(event).collect());
    stored.await.expect("stored");
    tx.commit().await.expect("committed");
    store.notify().await.expect("notified");
}

#[test]
fn a_relay_on_smol_delivers_what_it_is_woken_for() {
    smol::block_on(async {
        let url = PgServer::shared().create_database();
        let store = PgStore::new(PgPool::connect(&url).await.expect("connected"));
        store.migrate().await.expect("migrated");
        let (done, finished) = oneshot::channel();
        let left = Mutex::new((200, Some(done)));
        let relay = Relay::builder(store.clone(), Until { left }, SmolTimer)
            .spawn(Arc::new(SmolSpawn))
            .poll_interval(Duration::from_secs(600))
            .wake(store.wake(SmolTimer));
        let relay = relay.build().expect("valid");
        let running = relay.run(finished.map(drop));
        let producing = async {
            for _ in 0..4 {
                put(&store, 50).await;
            }
        };
        let (report, ()) = futures::join!(running, producing);
        assert_eq!((report.published, report.abandoned), (200, 0));
    });
}
