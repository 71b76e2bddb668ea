//! Panics, hanging transports, policies and observers that misbehave.

use std::time::Duration;

use outbox_core::{
    DeadLetterFilter, DeadLetters, Delivery, DeliveryError, Error, Event, FailedAttempt, Observer,
    Page, Phase, Receipt, RetryDecision, RetryPolicy, TokioSpawn, Transition, Transport,
    async_trait,
};

use super::support::{
    Seen, Via, event, ms, no, ok, payloads, put, relay, secs, store, text, until,
};

/// Panics in the call itself for `0`, in the future for `1`.
struct Panicking;

impl Transport for Panicking {
    fn deliver<'s, 'f>(
        &'s self,
        delivery: Delivery,
    ) -> futures::future::BoxFuture<'f, Result<Receipt, DeliveryError>>
    where
        's: 'f,
        Self: 'f,
    {
        match text(&delivery).as_str() {
            "0" => panic!("in the call"),
            "1" => Box::pin(async { panic!("in the future of {}", 1) }),
            _ => Box::pin(async { ok() }),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_transport_is_a_failed_attempt() {
    for tasks in [false, true] {
        let store = store();
        put(&store, (0..3).map(event)).await;
        let seen = Seen::default();
        let mut builder = relay(store.clone(), Panicking).observer(seen.clone());
        if tasks {
            builder = builder.spawn(TokioSpawn);
        }
        let report = builder.build().unwrap().run_once().await.unwrap();
        assert_eq!((report.retried, report.published), (2, 1));
        assert!(
            seen.has("Sending the transport panicked: in the call"),
            "{:?}",
            seen.lines()
        );
        assert!(seen.has("Sending the transport panicked: in the future of 1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_transport_is_timed_out_with_its_phase() {
    for tasks in [false, true] {
        let store = store();
        put(&store, (0..2).map(event)).await;
        let transport = Via(|delivery: Delivery| async move {
            delivery.advance(if text(&delivery) == "0" {
                Phase::Waiting
            } else {
                Phase::Sending
            });
            std::future::pending().await
        });
        let seen = Seen::default();
        let mut builder = relay(store.clone(), transport)
            .observer(seen.clone())
            .delivery_timeout(secs(3));
        if tasks {
            builder = builder.spawn(TokioSpawn);
        }
        let start = tokio::time::Instant::now();
        let report = builder.build().unwrap().run_once().await.unwrap();
        assert_eq!(report.retried, 2);
        assert!(start.elapsed() >= secs(3) && start.elapsed() < ms(3_100));
        assert!(
            seen.has("retrying 1 Waiting no answer within 3s"),
            "{:?}",
            seen.lines()
        );
        assert!(seen.has("retrying 2 Sending no answer within 3s"));
    }
}

struct BadPolicy;

impl RetryPolicy for BadPolicy {
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    fn max_attempts(&self, _: &Event) -> u32 {
        panic!("no limit")
    }

    fn decide(&self, _: &FailedAttempt, _: &DeliveryError) -> RetryDecision {
        panic!("no decision")
    }
}

struct BadObserver;

impl Observer for BadObserver {
    fn on(&self, _: &Transition<'_>) {
        panic!("no sight")
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_or_an_observer_that_panics_stops_nothing() {
    let store = store();
    put(&store, (0..3).map(event)).await;
    let transport = Via(|delivery: Delivery| async move {
        if delivery.attempt() == 1 {
            no(DeliveryError::transient("503"))
        } else {
            ok()
        }
    });
    let seen = Seen::default();
    let relay = relay(store.clone(), transport)
        .retry(BadPolicy)
        .observer(BadObserver)
        .observer(seen.clone())
        .build()
        .unwrap();
    let report = relay
        .run(until("delivered", || payloads(&store).len() == 3))
        .await;
    assert_eq!((report.retried, report.published), (3, 3));
    assert_eq!(seen.count("delivered"), 3, "other observers see everything");
}

struct Forever;

impl RetryPolicy for Forever {
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    fn max_attempts(&self, _: &Event) -> u32 {
        u32::MAX
    }

    fn decide(&self, _: &FailedAttempt, _: &DeliveryError) -> RetryDecision {
        RetryDecision::After(Duration::MAX)
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_delay_is_no_overflow() {
    let store = store();
    put(&store, [event(0), event(1)]).await;
    let transport = Via(|delivery: Delivery| async move {
        no(if text(&delivery) == "0" {
            DeliveryError::transient("503")
        } else {
            DeliveryError::throttled("429").with_retry_after(Duration::MAX)
        })
    });
    let relay = relay(store.clone(), transport)
        .retry(Forever)
        .build()
        .unwrap();
    assert_eq!(relay.run(super::support::pass(ms(50))).await.retried, 2);
}

#[tokio::test(start_paused = true)]
async fn error_text_is_cleaned_and_capped() {
    let store = store();
    put(&store, [event(0)]).await;
    let transport =
        Via(|_| async { no(DeliveryError::rejected(format!("a\0{}", "b".repeat(9_000)))) });
    relay(store.clone(), transport)
        .build()
        .unwrap()
        .run_once()
        .await
        .unwrap();
    let letters = store
        .list(&DeadLetterFilter::all(), &Page::default())
        .await
        .unwrap();
    let error = letters[0].event.last_error.clone().unwrap();
    assert!(error.starts_with("abb") && error.len() == 2_048);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_a_store_that_fails() {
    struct Broken;

    #[async_trait]
    impl outbox_core::OutboxStore for Broken {
        async fn claim(&self, _: &outbox_core::ClaimRequest) -> Result<outbox_core::Claim, Error> {
            panic!("broken")
        }
        async fn settle(
            &self,
            _: &[outbox_core::Settlement],
        ) -> Result<Vec<outbox_core::LeaseStatus>, Error> {
            panic!("broken")
        }
        async fn extend(
            &self,
            _: &[outbox_core::Lease],
            _: Duration,
        ) -> Result<Vec<outbox_core::LeaseStatus>, Error> {
            panic!("broken")
        }
        async fn release(
            &self,
            _: &[outbox_core::Lease],
        ) -> Result<Vec<outbox_core::LeaseStatus>, Error> {
            panic!("broken")
        }
        async fn release_claim(&self, _: outbox_core::LeaseToken) -> Result<u64, Error> {
            panic!("broken")
        }
        async fn hold(&self, _: &str, _: outbox_core::Hold) -> Result<(), Error> {
            panic!("broken")
        }
    }

    let seen = Seen::default();
    let relay = relay(Broken, Via(|_| async { ok() }))
        .observer(seen.clone())
        .build()
        .unwrap();
    relay.run(super::support::pass(secs(60))).await;
    assert_eq!(seen.lines(), ["down the store panicked: broken"]);
}
