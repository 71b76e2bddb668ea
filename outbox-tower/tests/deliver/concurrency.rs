use std::sync::Arc;

use futures::future::BoxFuture;
use outbox_core::{DeliveryErrorKind, Phase, TokioTimer, Transport};
use outbox_tower::concurrency::{Concurrency, ConcurrencyLayer};
use outbox_tower::{ByDestination, ServiceTransport, TransportService};
use tower::Layer;

use crate::support::{Gate, Moody, SECOND, delivery, delivery_to, poll_once};

type Limited<T> = ServiceTransport<Concurrency<TransportService<T>, ByDestination>>;

fn limited(layer: &ConcurrencyLayer<ByDestination>, gate: &Gate) -> Limited<Gate> {
    ServiceTransport::new(layer.layer(TransportService::new(gate.clone())))
}

#[tokio::test]
async fn a_full_key_refuses_unattempted_and_holds_up_no_other_key() {
    let gate = Gate::new();
    let layer = ConcurrencyLayer::new(1, ByDestination).retry_after(3 * SECOND);
    let transport = limited(&layer, &gate);
    let mut running = transport.deliver(delivery_to("a"));
    assert!(poll_once(&mut running).await.is_none());
    let refused = transport.deliver(delivery_to("a")).await.unwrap_err();
    assert_eq!(refused.kind(), DeliveryErrorKind::NotAttempted);
    assert_eq!(refused.retry_after(), Some(3 * SECOND));
    let mut other = transport.deliver(delivery_to("b"));
    assert!(poll_once(&mut other).await.is_none());
    assert_eq!(gate.calls(), 2);
}

#[tokio::test]
async fn a_slot_is_free_again_after_success_failure_panic_and_drop() {
    let layer = ConcurrencyLayer::new(1, |_: &outbox_core::Delivery| "one key".to_owned());
    let stack = layer.layer(TransportService::new(Moody::default()));
    let transport = Arc::new(ServiceTransport::new(stack));
    transport.deliver(delivery()).await.unwrap();
    transport.deliver(delivery_to("down")).await.unwrap_err();
    let other = Arc::clone(&transport);
    let panicked = tokio::spawn(async move { other.deliver(delivery_to("panics")).await });
    assert!(panicked.await.is_err());
    let mut dropped = transport.deliver(delivery_to("hangs"));
    assert!(poll_once(&mut dropped).await.is_none());
    drop(dropped);
    transport.deliver(delivery()).await.unwrap();
}

#[tokio::test]
async fn services_of_one_layer_share_the_slots() {
    let gate = Gate::new();
    let layer = ConcurrencyLayer::new(1, ByDestination);
    let (one, other) = (limited(&layer, &gate), limited(&layer.clone(), &gate));
    let mut running = one.deliver(delivery());
    assert!(poll_once(&mut running).await.is_none());
    assert!(other.deliver(delivery()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_go_in_order_unsent_and_no_longer_than_allowed() {
    let gate = Gate::new();
    let layer = ConcurrencyLayer::new(1, ByDestination).max_wait(5 * SECOND, TokioTimer);
    let transport = limited(&layer, &gate);
    let mut running = transport.deliver(delivery());
    assert!(poll_once(&mut running).await.is_none());

    let first = delivery();
    let mut waiting: Vec<BoxFuture<'_, _>> = Vec::new();
    for delivery in [first.clone(), delivery(), delivery()] {
        let mut future = transport.deliver(delivery);
        assert!(poll_once(&mut future).await.is_none());
        waiting.push(future);
    }
    assert_eq!((gate.calls(), first.phase()), (1, Phase::Waiting));

    // The second gives its place up; the slot goes to the first and then to the third.
    drop(waiting.remove(1));
    gate.open(1);
    running.await.unwrap();
    assert!(poll_once(&mut waiting[1]).await.is_none());
    assert_eq!(gate.calls(), 1);
    assert!(poll_once(&mut waiting[0]).await.is_none());
    assert_eq!(gate.calls(), 2);
    gate.open(2);
    waiting.remove(0).await.unwrap();
    waiting.remove(0).await.unwrap();

    let mut running = transport.deliver(delivery());
    assert!(poll_once(&mut running).await.is_none());
    let began = tokio::time::Instant::now();
    let refused = transport.deliver(delivery()).await.unwrap_err();
    assert_eq!(refused.kind(), DeliveryErrorKind::NotAttempted);
    assert_eq!(began.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_slot_sent_to_a_waiter_that_went_away_is_passed_on() {
    let gate = Gate::new();
    let layer = ConcurrencyLayer::new(1, ByDestination).max_wait(5 * SECOND, TokioTimer);
    let transport = limited(&layer, &gate);
    let mut running = transport.deliver(delivery());
    assert!(poll_once(&mut running).await.is_none());
    let mut first = transport.deliver(delivery());
    assert!(poll_once(&mut first).await.is_none());
    let mut second = transport.deliver(delivery());
    assert!(poll_once(&mut second).await.is_none());
    drop(running); // the slot is in the first one's hands, who never looks
    drop(first);
    assert!(poll_once(&mut second).await.is_none());
    assert_eq!(gate.calls(), 2);
}

#[tokio::test]
async fn keys_that_went_are_forgotten() {
    let layer = ConcurrencyLayer::new(1, ByDestination);
    let stack = layer.layer(TransportService::new(Moody::default()));
    let transport = ServiceTransport::new(stack);
    for n in 0..20_000 {
        transport
            .deliver(delivery_to(&n.to_string()))
            .await
            .unwrap();
    }
    assert!(layer.keys() <= 2_000, "{} keys", layer.keys());
}
