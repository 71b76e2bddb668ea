//! What `PgStore` does beyond the conformance suite.
#![cfg(feature = "postgres")]

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    ClaimRequest, DeadLetterFilter, DeadLetters, DeathReason, Enqueue, Hold, LeaseStatus,
    Maintenance, NewEvent, OutboxStore, Outcome, Page, Replay, Settlement,
};
use outbox_sqlx::PgStore;
use sqlx::PgPool;
use tests::PgServer;

async fn store() -> PgStore {
    let url = PgServer::shared().create_database();
    let store = PgStore::new(PgPool::connect(&url).await.unwrap());
    store.migrate().await.unwrap();
    store
}

fn ask(rows: u32) -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(rows).unwrap(), Duration::from_secs(30))
}

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("d")
}

#[tokio::test]
async fn smoke() {
    let store = store().await;
    store.check_schema().await.unwrap();
    let mut tx = store.pool().begin().await.unwrap();
    store.enqueue(&mut tx, event()).await.unwrap();
    store.enqueue(&mut tx, event().key("k")).await.unwrap();
    store
        .enqueue(&mut tx, event().delay(Duration::from_millis(1)))
        .await
        .unwrap();
    store
        .enqueue_all(
            &mut tx,
            vec![event(), event().dedup_key("x"), event().dedup_key("x")],
        )
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let claim = store.claim(&ask(10)).await.unwrap();
    println!("{claim:#?}");
    assert_eq!(claim.events.len(), 5);
    let statuses = store
        .settle(
            &claim
                .events
                .iter()
                .enumerate()
                .map(|(n, claimed)| {
                    let outcome = match n {
                        0 => Outcome::Published,
                        1 => Outcome::Dead {
                            reason: DeathReason::Gone,
                            error: "410".into(),
                        },
                        2 => Outcome::Release,
                        3 => Outcome::Retry {
                            after: Duration::ZERO,
                            error: "e".into(),
                        },
                        _ => Outcome::Defer {
                            after: Duration::from_secs(60),
                            reason: "r".into(),
                        },
                    };
                    Settlement::new(claimed.lease, outcome)
                })
                .collect::<Vec<_>>(),
        )
        .await
        .unwrap();
    assert_eq!(statuses, [LeaseStatus::Ours; 5]);
    println!("{:?}", store.stats(100).await.unwrap());
    println!(
        "{:?}",
        store
            .list(&DeadLetterFilter::all(), &Page::default())
            .await
            .unwrap()
    );
    assert_eq!(
        store
            .replay(&Replay::new(DeadLetterFilter::all()))
            .await
            .unwrap(),
        1
    );
    store
        .hold("d", Hold::Disabled { reason: "x".into() })
        .await
        .unwrap();
    let claim = store.claim(&ask(10)).await.unwrap();
    assert_eq!(claim.events.len(), 0);
    println!("{:?} {:?}", store.stats(100).await.unwrap(), claim.next_due);
    store.hold("d", Hold::Free).await.unwrap();
    let claim = store.claim(&ask(10)).await.unwrap();
    assert_eq!(claim.events.len(), 3);
    let leases: Vec<_> = claim.events.iter().map(|c| c.lease).collect();
    assert_eq!(
        store.extend(&leases, Duration::from_secs(5)).await.unwrap(),
        [LeaseStatus::Ours; 3]
    );
    assert_eq!(store.release_claim(leases[0].token).await.unwrap(), 3);
    assert_eq!(
        store.release(&leases).await.unwrap(),
        [LeaseStatus::Unknown; 3]
    );
}
