//! Leases: extended, lost, too old to begin under.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use outbox_core::{
    Claim, ClaimRequest, Delivery, Error, Hold, Lease, LeaseStatus, LeaseToken, ManualClock,
    MemoryStore, OutboxStore, Settlement, async_trait,
};

use super::support::{
    Faulty, Seen, Via, event, ms, ok, pass, payloads, put, relay, secs, stats, store, text, until,
};

fn slow(
    by: u64,
) -> Via<
    impl Fn(Delivery) -> futures::future::BoxFuture<'static, super::support::Delivered> + Send + Sync,
> {
    Via(move |_| {
        Box::pin(async move {
            pass(secs(by)).await;
            ok()
        }) as futures::future::BoxFuture<'static, _>
    })
}

#[tokio::test(start_paused = true)]
async fn a_long_delivery_keeps_its_lease_and_a_second_relay_gets_nothing() {
    let store = store();
    put(&store, (0..4).map(|n| event(n).key("k"))).await;
    let faulty = Faulty::new(store.clone());
    let first = relay(faulty.clone(), slow(25))
        .lease(secs(30))
        .delivery_timeout(secs(29));
    let first = first.build().unwrap();
    let stolen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&stolen);
    let second = relay(
        store.clone(),
        Via(move |delivery: Delivery| {
            log.lock().unwrap().push(text(&delivery));
            async { ok() }
        }),
    );
    let second = second.build().unwrap();
    let (stop, stopped) = futures::channel::oneshot::channel::<()>();
    let script = async {
        until("all delivered", || payloads(&store).len() == 4).await;
        drop(stop);
    };
    let (report, _) = futures::join!(first.run(script), second.run(stopped.map(|_| ())));
    assert_eq!(
        report.published, 4,
        "a hundred seconds under a lease of thirty"
    );
    assert!(stolen.lock().unwrap().is_empty());
    // At each third of the lease, for the whole run in one call.
    assert!(
        (8..=12).contains(&faulty.calls("extend")),
        "{}",
        faulty.calls("extend")
    );
}

/// Takes over what `store` holds, as a relay does whose claim came after the lease had run out.
async fn take_over(store: &MemoryStore) -> usize {
    let request = outbox_core::ClaimRequest::new(std::num::NonZeroU32::MAX, secs(3_600));
    store.claim(&request).await.unwrap().events.len()
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_reported_and_nothing_is_settled_under_it() {
    let store = store();
    put(&store, (0..3).map(|n| event(n).key("k"))).await;
    let faulty = Faulty::new(store.clone());
    let seen = Seen::default();
    let relay = relay(faulty.clone(), slow(25))
        .lease(secs(30))
        .delivery_timeout(secs(29))
        .observer(seen.clone())
        .build()
        .unwrap();
    let report = relay
        .run(async {
            pass(secs(1)).await;
            // The first delivery ends at 25 s; then the store is out of reach until the lease is over.
            faulty.fail_before(&["extend", "settle", "claim"]);
            pass(secs(34)).await;
            assert_eq!(take_over(&store).await, 3);
            faulty.up();
            pass(secs(90)).await;
        })
        .await;
    assert_eq!(
        (report.published, report.lost),
        (0, 3),
        "{:?}",
        seen.lines()
    );
    assert_eq!(seen.count("lost"), 3, "each once: {:?}", seen.lines());
    assert_eq!(seen.count("attempting"), 1, "the tail is lost with its run");
    assert_eq!(stats(&store).await.claimed.value, 3);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_during_an_attempt_is_told_once() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    put(&store, [event(0)]).await;
    let seen = Seen::default();
    let relay = relay(store.clone(), slow(25))
        .lease(secs(30))
        .delivery_timeout(secs(29))
        .observer(seen.clone())
        .build()
        .unwrap();
    let report = relay
        .run(async {
            pass(secs(1)).await;
            // For the store the lease is over. The extension says so, and then the settle.
            clock.advance(secs(31));
            assert_eq!(take_over(&store).await, 1);
            pass(secs(30)).await;
        })
        .await;
    assert_eq!((report.published, report.lost), (0, 1));
    assert_eq!(seen.count("lost"), 1, "{:?}", seen.lines());
}

#[tokio::test(start_paused = true)]
async fn no_delivery_begins_under_a_lease_that_it_could_outlive() {
    let store = store();
    put(&store, (0..2).map(|n| event(n).key("k"))).await;
    let faulty = Faulty::new(store.clone());
    let starts = Arc::new(Mutex::new(Vec::new()));
    let (log, calls) = (Arc::clone(&starts), faulty.clone());
    let transport = Via(move |_| {
        log.lock().unwrap().push(calls.calls("extend"));
        async {
            pass(secs(3)).await;
            ok()
        }
    });
    // A third of the lease is ten seconds, but only one second is left beside the time-out.
    let relay = relay(faulty, transport)
        .lease(secs(30))
        .delivery_timeout(secs(29));
    let report = relay.build().unwrap().run_once().await.unwrap();
    assert_eq!(report.published, 2);
    assert_eq!(
        *starts.lock().unwrap(),
        [0, 1],
        "extended before the second began"
    );
}

#[tokio::test(start_paused = true)]
async fn what_waits_too_long_for_its_destination_goes_back() {
    let store = store();
    put(&store, (0..6).map(event)).await;
    let relay = relay(store.clone(), Via(|_| std::future::pending()))
        .per_destination(2)
        .lease(secs(60))
        .delivery_timeout(secs(50))
        .drain_budget(ms(1))
        .build()
        .unwrap();
    let report = relay
        .run(async {
            pass(secs(15)).await;
            assert_eq!(stats(&store).await.claimed.value, 6);
            pass(secs(10)).await;
            assert_eq!(
                stats(&store).await.claimed.value,
                2,
                "others may have the four"
            );
        })
        .await;
    assert_eq!((report.released, report.abandoned), (4, 2));
}

/// A store in which the second event's lease is lost at the first extension, and no other.
struct OneLost(MemoryStore);

#[async_trait]
impl OutboxStore for OneLost {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        self.0.claim(request).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.0.settle(batch).await
    }

    async fn extend(
        &self,
        leases: &[Lease],
        by: std::time::Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        let mut statuses = Vec::new();
        for lease in leases {
            statuses.push(if lease.seq == 2 {
                LeaseStatus::Lost
            } else {
                self.0.extend(&[*lease], by).await?[0]
            });
        }
        Ok(statuses)
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.0.release(leases).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.0.release_claim(token).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.0.hold(destination, hold).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_lost_whole_so_that_nothing_overtakes_what_another_relay_has() {
    let store = store();
    put(&store, (0..4).map(|n| event(n).key("k"))).await;
    let begun = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&begun);
    let transport = Via(move |delivery: Delivery| {
        log.lock().unwrap().push(text(&delivery));
        let first = delivery.event().seq == 1;
        async move {
            if first {
                pass(secs(25)).await;
            }
            ok()
        }
    });
    let relay = relay(OneLost(store.clone()), transport)
        .lease(secs(30))
        .delivery_timeout(secs(29));
    let script = async {
        until("all delivered", || payloads(&store).len() == 4).await;
    };
    relay.build().unwrap().run(script).await;
    assert_eq!(*begun.lock().unwrap(), ["0", "1", "2", "3"]);
}
