//! What the layers cost beside the bare call, at 10,000 keys.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use divan::{Bencher, black_box};
use futures::executor::block_on;
use outbox_core::{Delivery, DeliveryError, Event, EventId, Receipt, Transport, async_trait};
use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
use outbox_tower::concurrency::ConcurrencyLayer;
use outbox_tower::rate::{Rate, RateLayer};
use outbox_tower::{ByDestination, ServiceTransport, TransportService};
use tower::Layer;

const KEYS: usize = 10_000;

fn main() {
    divan::main();
}

struct Noop;

#[async_trait]
impl Transport for Noop {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        black_box(delivery);
        Ok(Receipt::new())
    }
}

fn run(bencher: Bencher<'_, '_>, transport: impl Transport) {
    let deliveries: Vec<Delivery> = (0..KEYS)
        .map(|n| {
            let destination = format!("https://receiver-{n}.example/hooks/incoming");
            let event = Event::new(EventId::new(), 1, "Pushed", destination, "{}");
            Delivery::new(Arc::new(event), Duration::from_secs(30))
        })
        .collect();
    // Every key has state before it is measured.
    for delivery in &deliveries {
        let _ = block_on(transport.deliver(delivery.clone()));
    }
    let mut next = 0;
    bencher.bench_local(|| {
        next = (next + 7_919) % KEYS;
        black_box(block_on(transport.deliver(deliveries[next].clone())))
    });
}

#[divan::bench]
fn bare(bencher: Bencher<'_, '_>) {
    run(bencher, Noop);
}

#[divan::bench]
fn there_and_back(bencher: Bencher<'_, '_>) {
    run(bencher, ServiceTransport::new(TransportService::new(Noop)));
}

#[divan::bench]
fn there_and_back_serialized(bencher: Bencher<'_, '_>) {
    let service = TransportService::new(Noop);
    run(bencher, ServiceTransport::serialized(service));
}

fn layered<L>(bencher: Bencher<'_, '_>, layer: L)
where
    L: Layer<TransportService<Noop>>,
    ServiceTransport<L::Service>: Transport,
    L::Service: tower::Service<Delivery, Response = Receipt, Error: Into<tower::BoxError>, Future: Send>
        + Clone
        + Send,
{
    let stack = layer.layer(TransportService::new(Noop));
    run(bencher, ServiceTransport::new(stack));
}

#[divan::bench]
fn concurrency(bencher: Bencher<'_, '_>) {
    layered(bencher, ConcurrencyLayer::new(8, ByDestination));
}

#[divan::bench]
fn rate(bencher: Bencher<'_, '_>) {
    let rate = Rate::per_second(NonZeroU32::MAX);
    layered(bencher, RateLayer::new(rate, ByDestination));
}

#[divan::bench]
fn circuit_breaker(bencher: Bencher<'_, '_>) {
    let breaker = Breaker::default();
    layered(bencher, CircuitBreakerLayer::per_destination(breaker));
}
