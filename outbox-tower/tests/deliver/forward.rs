use std::num::NonZeroU32;

use outbox_core::{
    ClaimRequest, DeadLetterFilter, DeadLetters, DeathReason, Enqueue, MemoryStore, NewEvent,
    OutboxStore, Outcome, Page, Settlement, TokioTimer,
};
use outbox_tower::Forwarder;

use crate::support::{Moody, SECOND};

async fn dead_letters(destinations: &[&str]) -> MemoryStore {
    let store = MemoryStore::new();
    let mut tx = store.begin();
    for destination in destinations {
        let event = NewEvent::bytes("T", "x").to(*destination);
        store.enqueue(&mut tx, event).await.unwrap();
    }
    tx.commit();
    let request = ClaimRequest::new(NonZeroU32::new(100).unwrap(), 30 * SECOND);
    let claim = store.claim(&request).await.unwrap();
    let dead = |claimed: &outbox_core::Claimed| {
        let reason = DeathReason::Rejected;
        let error = "400".to_owned();
        Settlement::new(claimed.lease, Outcome::Dead { reason, error })
    };
    let batch: Vec<_> = claim.events.iter().map(dead).collect();
    store.settle(&batch).await.unwrap();
    store
}

#[tokio::test(start_paused = true)]
async fn what_is_delivered_is_discarded_and_what_fails_stays() {
    let store = dead_letters(&["up", "down", "up", "hangs", "up"]).await;
    let archive = Moody::default();
    let forwarder = Forwarder::new(&store, archive.clone(), TokioTimer);
    let done = forwarder.run_once(|| false).await.unwrap();
    assert_eq!((done.forwarded, done.failed), (3, 2));
    let left = store
        .list(&DeadLetterFilter::all(), &Page::default())
        .await
        .unwrap();
    let left: Vec<_> = left
        .iter()
        .map(|letter| letter.event.destination.as_str())
        .collect();
    assert_eq!(left, ["down", "hangs"]);
    assert_eq!(archive.calls(), 5);
}

#[tokio::test]
async fn the_transport_gets_another_destination_where_one_is_set() {
    let store = dead_letters(&["down"]).await;
    let forwarder = Forwarder::new(&store, Moody::default(), TokioTimer).to("archive");
    let done = forwarder.run_once(|| false).await.unwrap();
    assert_eq!((done.forwarded, done.failed), (1, 0));
}

#[tokio::test]
async fn a_stop_is_heeded_between_letters() {
    let store = dead_letters(&["up", "up"]).await;
    let forwarder = Forwarder::new(&store, Moody::default(), TokioTimer);
    let done = forwarder.run_once(|| true).await.unwrap();
    assert_eq!(done.forwarded, 0);
}
