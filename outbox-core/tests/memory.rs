//! What `MemoryStore` does beyond the conformance suite.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::{
    ClaimRequest, DeadLetterFilter, DeadLetters, DeathReason, Enqueue, Error, ErrorKind,
    LeaseStatus, Maintenance, ManualClock, MemoryStore, MemoryTx, NewEvent, OutboxStore, Outcome,
    Prune, Pruned, Retention, Settlement,
};

fn request(rows: u32) -> ClaimRequest {
    ClaimRequest::new(
        NonZeroU32::MIN.saturating_add(rows - 1),
        Duration::from_secs(30),
    )
}

fn event(key: Option<&str>) -> NewEvent {
    let event = NewEvent::bytes("T", "x").to("d");
    match key {
        Some(key) => event.key(key),
        None => event,
    }
}

/// A connection that stands in for a pooled one: it coerces to the type that enqueue wants.
struct Pooled(MemoryTx);

impl std::ops::Deref for Pooled {
    type Target = MemoryTx;
    fn deref(&self) -> &MemoryTx {
        &self.0
    }
}

impl std::ops::DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut MemoryTx {
        &mut self.0
    }
}

#[test]
fn enqueue_coerces_connections_through_every_pointer() {
    futures::executor::block_on(async {
        let store = MemoryStore::new();
        let by_reference = &&store;
        let shared = Arc::new(store.clone());
        let boxed = Box::new(store.clone());
        let erased: Arc<dyn Enqueue<MemoryTx>> = Arc::new(store.clone());
        let mut tx = Pooled(store.begin());
        store.enqueue(&mut tx, event(None)).await?;
        by_reference.enqueue(&mut tx, event(None)).await?;
        shared.enqueue(&mut tx, event(None)).await?;
        boxed.enqueue(&mut tx, event(None)).await?;
        erased.enqueue(&mut tx, event(None)).await?;
        tx.0.commit();
        assert_eq!(shared.claim(&request(10)).await?.events.len(), 5);
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn a_transaction_of_another_store_is_refused() {
    futures::executor::block_on(async {
        let mut tx = MemoryStore::new().begin();
        let refused = MemoryStore::new().enqueue(&mut tx, event(None)).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn published_events_are_kept_unless_told_otherwise() {
    futures::executor::block_on(async {
        for (retention, kept) in [(Retention::Keep, 3), (Retention::DeleteAtOnce, 0)] {
            let store = MemoryStore::with_clock(ManualClock::new()).retention(retention);
            let mut tx = store.begin();
            for key in [None, Some("k"), Some("k")] {
                store.enqueue(&mut tx, event(key)).await?;
            }
            tx.commit();
            let claim = store.claim(&request(10)).await?;
            let leases = claim.events.iter().map(|event| event.lease);
            let batch: Vec<_> = leases
                .map(|l| Settlement::new(l, Outcome::Published))
                .collect();
            assert_eq!(store.settle(&batch).await?, [LeaseStatus::Ours; 3]);
            assert_eq!(store.published().len(), kept);
        }
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn records_of_discarded_letters_are_pruned_by_age_and_batches() {
    futures::executor::block_on(async {
        let (clock, hour) = (ManualClock::new(), Duration::from_secs(3_600));
        let store = MemoryStore::with_clock(clock.clone());
        for _ in 0..4 {
            let mut tx = store.begin();
            store.enqueue(&mut tx, event(None)).await?;
            tx.commit();
            let lease = store.claim(&request(1)).await?.events[0].lease;
            let (reason, error) = (DeathReason::Gone, "410".to_owned());
            let dead = Settlement::new(lease, Outcome::Dead { reason, error });
            assert_eq!(store.settle(&[dead]).await?, [LeaseStatus::Ours]);
            clock.advance(hour);
            let all = DeadLetterFilter::all();
            assert_eq!(store.discard(&all, 10, "seen").await?, 1);
        }
        let mut prune = Prune::default();
        (prune.published_after, prune.rows) = (Some(hour), 2);
        for left in [&[3, 4][..], &[4], &[4]] {
            assert_eq!(store.prune(&prune).await?, Pruned::default());
            let kept = store.discarded();
            let kept: Vec<i64> = kept.iter().map(|(event, _)| event.seq).collect();
            assert_eq!(kept, left);
        }
        Ok::<(), Error>(())
    })
    .unwrap();
}
