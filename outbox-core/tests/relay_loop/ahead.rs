//! Claims that run ahead of the slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outbox_core::{
    Claim, ClaimRequest, Delivery, Error, Hold, Lease, LeaseStatus, LeaseToken, MemoryStore,
    OutboxStore, Relay, Settlement, async_trait,
};

use crate::support::{Via, event, ms, ok, pass, payloads, put, relay, secs, stats, store, until};

const CLAIM: Duration = ms(4);

/// A store that takes its time to claim.
struct Slow(MemoryStore);

#[async_trait]
impl OutboxStore for Slow {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        pass(CLAIM).await;
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
    slots_for_each(16, store, period, hang)
}

/// The same with so many at once for each destination.
fn slots_for_each(
    each: usize,
    store: &MemoryStore,
    period: Duration,
    hang: &Arc<AtomicBool>,
) -> Relay {
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
    relay(Slow(store.clone()), transport)
        .concurrency(16)
        .per_destination(each)
        .lease(secs(60))
        .delivery_timeout(secs(50))
        .drain_budget(ms(1))
        .build()
        .unwrap()
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
async fn a_claim_brings_no_more_for_one_destination_than_may_begin_or_wait() {
    let store = store();
    put(&store, (0..800).map(event)).await;
    let relay = slots_for_each(2, &store, CLAIM, &Arc::default());
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
