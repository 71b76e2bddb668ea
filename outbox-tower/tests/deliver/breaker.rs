use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::{Delivery, DeliveryErrorKind, TokioTimer, Transport};
use outbox_tower::breaker::{Breaker, CircuitBreaker, CircuitBreakerLayer, CircuitState, Circuits};
use outbox_tower::{ByDestination, ServiceTransport, TransportService};
use tower::Layer;

use crate::support::{Gate, Moody, SECOND, delivery_to, poll_once};

type Guarded<T> = ServiceTransport<CircuitBreaker<TransportService<T>, ByDestination>>;

fn guard<T: Transport + 'static>(breaker: Breaker, transport: T) -> (Guarded<T>, Circuits) {
    let layer = CircuitBreakerLayer::per_destination(breaker.timer(TokioTimer));
    let circuits = layer.circuits();
    let stack = layer.layer(TransportService::new(transport));
    (ServiceTransport::new(stack), circuits)
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_attempts_nothing_says_when_and_harms_no_other_key() {
    let moody = Moody::default();
    let (transport, circuits) = guard(Breaker::default().consecutive(2), moody.clone());
    for _ in 0..2 {
        transport.deliver(delivery_to("down")).await.unwrap_err();
    }
    assert_eq!(circuits.state("down"), CircuitState::Open);
    let refused = transport.deliver(delivery_to("down")).await.unwrap_err();
    assert_eq!(refused.kind(), DeliveryErrorKind::NotAttempted);
    assert_eq!(refused.retry_after(), Some(10 * SECOND));
    assert_eq!(moody.calls(), 2);
    transport.deliver(delivery_to("up")).await.unwrap();
    assert_eq!(circuits.tripped(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_circuit_may_be_opened_for_as_long_as_can_be_said() {
    let forever = Breaker::default()
        .consecutive(1)
        .max_open(Duration::MAX)
        .open_for(Duration::MAX);
    let (transport, circuits) = guard(forever, Moody::default());
    circuits.open("d", Duration::MAX);
    transport.deliver(delivery_to("down")).await.unwrap_err();
    for key in ["d", "down"] {
        assert_eq!(circuits.state(key), CircuitState::Open);
        let refused = transport.deliver(delivery_to(key)).await.unwrap_err();
        assert_eq!(refused.kind(), DeliveryErrorKind::NotAttempted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_closes_it_or_opens_it_for_longer() {
    let moody = Moody::default();
    let (transport, circuits) = guard(Breaker::default().consecutive(1), moody.clone());
    transport.deliver(delivery_to("down")).await.unwrap_err();
    tokio::time::advance(10 * SECOND).await;
    transport.deliver(delivery_to("down")).await.unwrap_err();
    let refused = transport.deliver(delivery_to("down")).await.unwrap_err();
    assert_eq!(refused.retry_after(), Some(20 * SECOND));
    assert_eq!(moody.calls(), 2);
    circuits.reset("down");
    assert_eq!(circuits.state("down"), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_gives_its_place_back_whichever_clone_made_it() {
    let gate = Gate::new();
    let (transport, circuits) = guard(Breaker::default(), gate.clone());
    circuits.open("d", 10 * SECOND);
    tokio::time::advance(10 * SECOND).await;
    let mut probe = transport.deliver(delivery_to("d"));
    assert!(poll_once(&mut probe).await.is_none());
    assert!(transport.deliver(delivery_to("d")).await.is_err());
    drop(probe);
    assert_eq!(circuits.state("d"), CircuitState::HalfOpen);
    gate.open(1);
    transport.deliver(delivery_to("d")).await.unwrap();
    assert_eq!(circuits.state("d"), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_hangs_until_the_relay_gives_up_counts_as_failing() {
    let (transport, circuits) = guard(Breaker::default().consecutive(1), Moody::default());
    let mut early = transport.deliver(delivery_to("hangs"));
    assert!(poll_once(&mut early).await.is_none());
    drop(early); // a shutdown, say
    assert_eq!(circuits.state("hangs"), CircuitState::Closed);
    let mut hanging = transport.deliver(delivery_to("hangs"));
    assert!(poll_once(&mut hanging).await.is_none());
    tokio::time::advance(30 * SECOND).await;
    drop(hanging);
    assert_eq!(circuits.state("hangs"), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn refusals_for_good_and_throttles_open_nothing() {
    let (transport, circuits) = guard(Breaker::default().consecutive(1), Moody::default());
    for destination in ["gone", "unroutable", "busy"] {
        transport
            .deliver(delivery_to(destination))
            .await
            .unwrap_err();
        assert_eq!(circuits.state(destination), CircuitState::Closed);
    }
}

#[tokio::test]
async fn changes_are_observed_and_listed() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let layer = CircuitBreakerLayer::observed(
        Breaker::default().consecutive(1).open_for(Duration::ZERO),
        ByDestination,
        move |key, state| log.lock().unwrap().push((key.to_owned(), state)),
    );
    let stack = layer.layer(TransportService::new(Moody::default()));
    let transport = ServiceTransport::new(stack);
    transport.deliver(delivery_to("down")).await.unwrap_err();
    transport.deliver(delivery_to("down")).await.unwrap_err();
    let key = || "down".to_owned();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (key(), CircuitState::Open),
            (key(), CircuitState::HalfOpen),
            (key(), CircuitState::Open),
        ]
    );
    let list = layer.circuits().list();
    assert_eq!(
        (list[0].key.as_str(), list[0].state),
        ("down", CircuitState::Open)
    );
}

#[tokio::test(start_paused = true)]
async fn keys_that_went_are_forgotten() {
    let (transport, circuits) = guard(Breaker::default(), Moody::default());
    for n in 0..20_000 {
        transport
            .deliver(delivery_to(&n.to_string()))
            .await
            .unwrap();
        if n % 100 == 0 {
            tokio::time::advance(61 * SECOND).await;
        }
    }
    assert!(circuits.keys() <= 2_000, "{} keys", circuits.keys());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_probe_at_a_time_passes_under_any_number_of_threads() {
    let gate = Gate::new();
    let layer = CircuitBreakerLayer::per_destination(Breaker::default());
    let circuits = layer.circuits();
    let stack = layer.layer(TransportService::new(gate.clone()));
    let transport = Arc::new(ServiceTransport::new(stack));
    circuits.open("d", Duration::ZERO);
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let transport = Arc::clone(&transport);
            tokio::spawn(async move { transport.deliver(delivery_to("d")).await })
        })
        .collect();
    crate::support::until(|| gate.calls() == 1).await;
    crate::support::until(|| tasks.iter().filter(|task| task.is_finished()).count() == 99).await;
    assert_eq!(gate.calls(), 1);
    gate.open(1);
    let results = futures::future::join_all(tasks).await;
    assert_eq!(
        results
            .iter()
            .filter(|r| r.as_ref().unwrap().is_ok())
            .count(),
        1
    );
}

#[tokio::test]
async fn any_key_will_do() {
    let by_key = |delivery: &Delivery| delivery.event().key.clone().unwrap_or_default();
    let layer = CircuitBreakerLayer::new(Breaker::default().consecutive(1), by_key);
    let stack = layer.layer(TransportService::new(Moody::default()));
    let transport = ServiceTransport::new(stack);
    transport.deliver(delivery_to("down")).await.unwrap_err();
    assert_eq!(layer.circuits().state(""), CircuitState::Open);
}
