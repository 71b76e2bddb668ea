//! A relay's unit test as a user writes it: no database, no network.

use outbox_core::mock::{claimed, event};
use outbox_core::{
    Claim, DeliveryError, LeaseStatus, MockOutboxStore, MockTransport, Outcome, Receipt, Relay,
    TokioTimer, Undecodable,
};

#[tokio::test]
async fn a_delivered_event_is_settled_as_published() {
    let mut store = MockOutboxStore::new();
    store
        .expect_claim()
        .times(1)
        .returning(|_| Ok(claimed([event()])));
    store
        .expect_settle()
        .withf(|batch| batch.len() == 1 && batch[0].outcome == Outcome::Published)
        .times(1)
        .returning(|batch| Ok(vec![LeaseStatus::Ours; batch.len()]));
    let mut transport = MockTransport::new();
    transport
        .expect_deliver()
        .withf(|delivery| delivery.event().event_type == "Tested" && delivery.attempt() == 1)
        .times(1)
        .returning(|_| Ok(Receipt::with_detail("200 OK")));

    let relay = Relay::builder(store, transport, TokioTimer)
        .build()
        .unwrap();
    let report = relay.run_once().await.unwrap();
    assert_eq!(report.published, 1);
}

#[tokio::test]
async fn a_failed_event_is_settled_as_retried() {
    let mut store = MockOutboxStore::new();
    store
        .expect_claim()
        .times(1)
        .returning(|_| Ok(claimed([event()])));
    store
        .expect_settle()
        .withf(|batch| matches!(&batch[0].outcome, Outcome::Retry { error, .. } if error == "503"))
        .times(1)
        .returning(|_| Ok(vec![LeaseStatus::Ours]));
    let mut transport = MockTransport::new();
    transport
        .expect_deliver()
        .returning(|_| Err(DeliveryError::transient("503")));

    let relay = Relay::builder(store, transport, TokioTimer)
        .build()
        .unwrap();
    assert_eq!(relay.run_once().await.unwrap().retried, 1);
}

#[tokio::test]
async fn an_unreadable_row_fails_alone() {
    let mut store = MockOutboxStore::new();
    store.expect_claim().times(1).returning(|_| {
        let mut claim: Claim = claimed([event(), event()]);
        let row = claim.events.remove(0);
        claim
            .undecodable
            .push(Undecodable::new(row.lease, "headers are no JSON"));
        Ok(claim)
    });
    store
        .expect_settle()
        .times(1)
        .returning(|batch| Ok(vec![LeaseStatus::Ours; batch.len()]));
    let mut transport = MockTransport::new();
    transport
        .expect_deliver()
        .times(1)
        .returning(|_| Ok(Receipt::new()));

    let relay = Relay::builder(store, transport, TokioTimer)
        .build()
        .unwrap();
    let report = relay.run_once().await.unwrap();
    assert_eq!((report.published, report.dead), (1, 1));
}
