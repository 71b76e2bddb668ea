//! Claims that run ahead of the slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use outbox_core::{
    Claim, ClaimRequest, Delivery, Error, Hold, Lease, LeaseStatus, LeaseToken, MemoryStore,
    OutboxStore, Relay, RelayBuilder, Settlement, async_trait,
};

use crate::support::{Via, event, ms, ok, pass, payloads, put, relay, secs, stats, store, until};

const CLAIM: Duration = ms(4);

/// A store that takes its time to claim, and the claims that it has under way: now, and at most.
#[derive(Clone)]
struct Slow(MemoryStore, Arc<[AtomicUsize; 2]>);

impl Slow {
    fn new(store: &MemoryStore) -> Self {
        Self(store.clone(), Arc::default())
    }

    fn claims_at_once(&self) -> usize {
        self.1[1].load(Ordering::SeqCst)
    }
}

#[async_trait]
impl OutboxStore for Slow {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let [now, most] = &*self.1;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        pass(CLAIM).await;
        now.fetch_sub(1, Ordering::SeqCst);
        self.0.claim(request).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.0.settle(batch).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        self.0.extend(leases, by).await
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

/// Sixteen slots; each attempt takes `period`, or hangs once `hang` is set.
fn sixteen_slots(store: &MemoryStore, period: Duration, hang: &Arc<AtomicBool>) -> Relay {
    slots_for_each(16, Slow::new(store), period, hang)
        .build()
        .unwrap()
}

/// The same with so many at once for each destination.
fn slots_for_each(
    each: usize,
    store: Slow,
    period: Duration,
    hang: &Arc<AtomicBool>,
) -> RelayBuilder {
    let hang = Arc::clone(hang);
    let transport = Via(move |_: Delivery| {
        let hangs = hang.load(Ordering::SeqCst);
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            pass(period).await;
            ok()
        }
    });
    relay(store, transport)
        .concurrency(16)
        .per_destination(each)
        .lease(secs(60))
        .delivery_timeout(secs(50))
        .drain_budget(ms(1))
}

#[tokio::test(start_paused = true)]
async fn fast_attempts_keep_the_slots_busy_while_a_claim_is_under_way() {
    let store = store();
    put(&store, (0..800).map(event)).await;
    let relay = sixteen_slots(&store, CLAIM, &Arc::default());
    let start = tokio::time::Instant::now();
    let all = until("all are delivered", || payloads(&store).len() == 800);
    assert_eq!(relay.run(all).await.published, 800);
    // Fifty rounds of sixteen; in turn with claims they would take twice as long.
    assert!(start.elapsed() < CLAIM * 65, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn attempts_quicker_than_claims_are_fed_by_two_claims_at_once() {
    let store = store();
    put(&store, (0..800).map(event)).await;
    let slow = Slow::new(&store);
    let relay = slots_for_each(16, slow.clone(), ms(1), &Arc::default());
    let relay = relay.batch_size(16).build().unwrap();
    let start = tokio::time::Instant::now();
    let all = until("all are delivered", || payloads(&store).len() == 800);
    let report = relay.run(all).await;
    assert_eq!((report.published, report.released), (800, 0));
    assert_eq!(slow.claims_at_once(), 2);
    // Fifty claims of sixteen; one after the other they would take twice as long.
    assert!(start.elapsed() < CLAIM * 35, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn attempts_twice_as_quick_as_claims_keep_the_slots_busy_all_the_time() {
    let store = store();
    put(&store, (0..1_600).map(event)).await;
    let relay = slots_for_each(16, Slow::new(&store), CLAIM / 2, &Arc::default());
    let relay = relay.build().unwrap();
    let start = tokio::time::Instant::now();
    let all = until("all are delivered", || payloads(&store).len() == 1_600);
    assert_eq!(relay.run(all).await.published, 1_600);
    // A hundred rounds of half a claim; half as many again where slots wait for claims.
    assert!(start.elapsed() < CLAIM * 60, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn slow_attempts_are_fed_by_one_claim_at_a_time() {
    let store = store();
    put(&store, (0..100).map(event)).await;
    let slow = Slow::new(&store);
    let relay = slots_for_each(16, slow.clone(), secs(1), &Arc::default());
    let all = until("all are delivered", || payloads(&store).len() == 100);
    relay.build().unwrap().run(all).await;
    assert_eq!(slow.claims_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_brings_no_more_for_one_destination_than_may_begin_or_wait() {
    let store = store();
    put(&store, (0..800).map(event)).await;
    let relay = slots_for_each(2, Slow::new(&store), CLAIM, &Arc::default());
    let relay = relay.build().unwrap();
    let all = until("all are delivered", || payloads(&store).len() == 800);
    let report = relay.run(all).await;
    assert_eq!(report.published, 800);
    assert!(report.released <= 100, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn slow_attempts_leave_to_others_what_has_no_slot() {
    let store = store();
    put(&store, (0..100).map(event)).await;
    let relay = sixteen_slots(&store, secs(1), &Arc::default());
    let all = async {
        for _ in 0..50 {
            pass(ms(100)).await;
            assert!(stats(&store).await.claimed.value <= 16);
        }
    };
    assert!(relay.run(all).await.published >= 48);
}

#[tokio::test(start_paused = true)]
async fn what_waits_too_long_for_a_slot_goes_back() {
    let store = store();
    put(&store, (0..800).map(event)).await;
    let hang = Arc::new(AtomicBool::new(false));
    let relay = sixteen_slots(&store, CLAIM, &hang);
    let report = relay
        .run(async {
            until("a part is delivered", || payloads(&store).len() > 200).await;
            hang.store(true, Ordering::SeqCst);
            pass(secs(15)).await;
            assert!(stats(&store).await.claimed.value > 16);
            pass(secs(10)).await;
            assert_eq!(stats(&store).await.claimed.value, 16);
        })
        .await;
    assert!(report.released > 0);
    assert_eq!((report.abandoned, report.lost), (16, 0));
}
