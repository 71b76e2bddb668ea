//! Waking, waiting and polling.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{BoxStream, StreamExt};
use outbox_core::{
    Claim, ClaimRequest, Delivery, Error, Hold, Lease, LeaseStatus, LeaseToken, MemoryStore,
    OutboxStore, Poke, Settlement, Wake, async_trait,
};

use super::support::{Faulty, Via, event, ms, ok, pass, payloads, put, relay, secs, store, until};

#[tokio::test(start_paused = true)]
async fn a_poke_wakes_the_relay_at_once() {
    let store = store();
    let outside = Poke::new();
    let relay = relay(store.clone(), Via(|_| async { ok() }))
        .poll_interval(secs(3_600))
        .wake(outside.clone())
        .build()
        .unwrap();
    let inside = relay.wake_handle();
    relay
        .run(async {
            pass(secs(600)).await;
            for (n, poke) in [inside, outside].iter().enumerate() {
                let start = tokio::time::Instant::now();
                put(&store, [event(n)]).await;
                poke.poke();
                until("delivered and settled", || payloads(&store).len() == n + 1).await;
                assert!(start.elapsed() <= ms(1), "{:?}", start.elapsed());
                pass(secs(600)).await;
            }
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_delayed_event_is_delivered_when_it_is_due() {
    let store = store();
    let start = tokio::time::Instant::now();
    let at = Arc::new(AtomicUsize::new(0));
    let log = Arc::clone(&at);
    let transport = Via(move |_| {
        log.store(
            usize::try_from(start.elapsed().as_millis()).unwrap(),
            Ordering::SeqCst,
        );
        async { ok() }
    });
    put(&store, [event(0).delay(ms(12_345))]).await;
    let relay = relay(store.clone(), transport)
        .poll_interval(secs(3_600))
        .build()
        .unwrap();
    relay
        .run(until("delivered", || !payloads(&store).is_empty()))
        .await;
    let at = at.load(Ordering::SeqCst);
    assert!((12_345..12_350).contains(&at), "{at}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_relay_asks_once_per_poll_interval() {
    let faulty = Faulty::new(store());
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .poll_interval(secs(1))
        .build()
        .unwrap();
    relay
        .run(async {
            pass(secs(10)).await;
            let before = faulty.all_calls().len();
            pass(secs(100)).await;
            // The interval is shortened at random by up to a fifth.
            let calls = faulty.all_calls().len() - before;
            assert!((100..=125).contains(&calls), "{calls}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn polling_goes_on_when_a_wake_source_ends_or_panics() {
    struct Ends;
    impl Wake for Ends {
        fn wakes(&self) -> BoxStream<'static, ()> {
            futures::stream::iter([(), ()]).boxed()
        }
    }
    struct Panics(bool);
    impl Wake for Panics {
        fn wakes(&self) -> BoxStream<'static, ()> {
            assert!(self.0, "no stream");
            futures::stream::poll_fn(|_| panic!("no item")).boxed()
        }
    }
    let store = store();
    let relay = relay(store.clone(), Via(|_| async { ok() }))
        .wake(Ends)
        .wake(Panics(true))
        .wake(Panics(false))
        .build()
        .unwrap();
    relay
        .run(async {
            pass(secs(10)).await;
            put(&store, [event(0)]).await;
            until("delivered", || !payloads(&store).is_empty()).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_drained_without_waiting_for_the_poll() {
    let store = store();
    put(
        &store,
        (0..1_000).map(|n| event(n).to(format!("d{}", n % 50))),
    )
    .await;
    let start = tokio::time::Instant::now();
    let relay = relay(
        store.clone(),
        Via(|_: Delivery| async {
            pass(ms(1)).await;
            ok()
        }),
    )
    .concurrency(100)
    .poll_interval(secs(60))
    .build()
    .unwrap();
    relay
        .run(until("drained", || store.published().len() == 1_000))
        .await;
    assert!(start.elapsed() < ms(60), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_long_key_is_drained_without_waiting_for_the_poll() {
    let store = store();
    put(&store, (0..500).map(|n| event(n).key("k"))).await;
    let start = tokio::time::Instant::now();
    let relay = relay(store.clone(), Via(|_: Delivery| async { ok() }))
        .concurrency(10)
        .poll_interval(secs(60))
        .build()
        .unwrap();
    relay
        .run(until("drained", || store.published().len() == 500))
        .await;
    assert!(start.elapsed() < ms(300), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_event_is_settled_at_once_and_many_together() {
    let store = store();
    let faulty = Faulty::new(store.clone());
    put(&store, (0..40).map(|n| event(n).to(format!("d{n}")))).await;
    let relay = relay(faulty.clone(), Via(|_| async { ok() }))
        .build()
        .unwrap();
    relay.run_once().await.unwrap();
    assert_eq!(faulty.all_calls(), ["claim", "settle"]);
    put(&store, [event(0)]).await;
    let start = tokio::time::Instant::now();
    relay.run_once().await.unwrap();
    assert_eq!(start.elapsed(), ms(0));
}

/// A store whose first claims look at other things than what is due, and say that there is more.
struct Unfinished {
    store: MemoryStore,
    left: AtomicUsize,
}

#[async_trait]
impl OutboxStore for Unfinished {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        if self.left.load(Ordering::SeqCst) == 0 {
            return self.store.claim(request).await;
        }
        self.left.fetch_sub(1, Ordering::SeqCst);
        let mut claim = Claim::default();
        claim.next_due = Some(std::time::Duration::ZERO);
        Ok(claim)
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.store.settle(batch).await
    }

    async fn extend(
        &self,
        leases: &[Lease],
        by: std::time::Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        self.store.extend(leases, by).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.store.release(leases).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.store.release_claim(token).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.store.hold(destination, hold).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_until_idle_goes_on_while_claims_say_that_there_is_more() {
    for (unfinished, delivered) in [(6, 1), (usize::MAX, 0)] {
        let store = store();
        put(&store, [event(0)]).await;
        let unfinished = Unfinished {
            store: store.clone(),
            left: AtomicUsize::new(unfinished),
        };
        let relay = relay(unfinished, Via(|_| async { ok() })).build().unwrap();
        let report = relay.run_until_idle().await.unwrap();
        assert_eq!(report.published, delivered, "and it ends in any case");
    }
}
