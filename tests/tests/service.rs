//! The unit tests of a user's service, as the README shows them: a producer without a database, a
//! relay without a network.

use outbox_core::{Enqueue, Error, NewEvent};
use serde_json::json;

/// What the service under test does when somebody pushes.
async fn accept_push<C: Send>(
    outbox: &impl Enqueue<C>,
    tx: &mut C,
    repo: i64,
    after: &str,
) -> Result<(), Error> {
    let event = NewEvent::json("RepositoryPushed", &json!({ "after": after }))?
        .key(repo)
        .to("https://ci.example/hooks");
    outbox.enqueue(tx, event).await?;
    Ok(())
}

mod producer {
    use outbox_core::{ErrorKind, RecordingOutbox};

    use super::*;

    #[tokio::test]
    async fn stores_one_event_for_a_push() {
        let outbox = RecordingOutbox::default();
        accept_push(&outbox, &mut (), 7, "4f1c").await.unwrap();

        let events = outbox.events();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].event_type(), "RepositoryPushed");
        assert_eq!(events[0].destination(), "https://ci.example/hooks");
        assert_eq!(events[0].ordering_key(), Some("7"));
        assert_eq!(events[0].payload().as_ref(), br#"{"after":"4f1c"}"#);
    }

    #[tokio::test]
    async fn hears_of_a_push_that_is_too_large() {
        let outbox = RecordingOutbox::default();
        let long = "f".repeat(2 << 20);
        let refused = accept_push(&outbox, &mut (), 7, &long).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidEvent);
        assert!(outbox.events().is_empty());
    }
}

mod relay {
    use std::time::Duration;

    use outbox_core::mock::{claimed, event};
    use outbox_core::{
        Claim, DeathReason, DeliveryError, LeaseStatus, MockOutboxStore, MockTransport, Outcome,
        Receipt, Relay, Settlement, TokioTimer,
    };

    /// A store that hands out one event and expects `outcome` for it.
    fn store_with_one_event(outcome: fn(&Outcome) -> bool) -> MockOutboxStore {
        let mut store = MockOutboxStore::new();
        let mut claims = vec![claimed([event()])];
        store
            .expect_claim()
            .returning(move |_| Ok(claims.pop().unwrap_or_else(Claim::default)));
        store
            .expect_settle()
            .times(1)
            .withf(move |batch: &[Settlement]| batch.len() == 1 && outcome(&batch[0].outcome))
            .returning(|batch| Ok(vec![LeaseStatus::Ours; batch.len()]));
        store
    }

    #[tokio::test]
    async fn settles_a_delivered_event_as_published() {
        let store = store_with_one_event(|outcome| matches!(outcome, Outcome::Published));
        let mut transport = MockTransport::new();
        transport
            .expect_deliver()
            .times(1)
            .returning(|_| Ok(Receipt::new()));

        let relay = Relay::builder(store, transport, TokioTimer)
            .build()
            .unwrap();
        assert_eq!(relay.run_until_idle().await.unwrap().published, 1);
    }

    #[tokio::test]
    async fn tries_a_failed_delivery_again_later() {
        let store = store_with_one_event(
            |outcome| matches!(outcome, Outcome::Retry { after, .. } if *after > Duration::ZERO),
        );
        let mut transport = MockTransport::new();
        transport
            .expect_deliver()
            .times(1)
            .returning(|_| Err(DeliveryError::transient("connection refused")));

        let relay = Relay::builder(store, transport, TokioTimer)
            .build()
            .unwrap();
        assert_eq!(relay.run_until_idle().await.unwrap().retried, 1);
    }

    #[tokio::test]
    async fn dead_letters_what_the_receiver_refuses() {
        let store = store_with_one_event(|outcome| {
            matches!(
                outcome,
                Outcome::Dead {
                    reason: DeathReason::Gone,
                    ..
                }
            )
        });
        let mut transport = MockTransport::new();
        transport
            .expect_deliver()
            .times(1)
            .returning(|_| Err(DeliveryError::gone("410 Gone")));

        let relay = Relay::builder(store, transport, TokioTimer)
            .build()
            .unwrap();
        assert_eq!(relay.run_until_idle().await.unwrap().dead, 1);
    }
}
