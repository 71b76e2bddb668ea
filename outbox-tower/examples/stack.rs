//! A relay whose transport stands behind a whole stack of layers: tower's own and this crate's.
//!
//! One of three destinations is down. Its circuit opens, its events wait uncharged, and the others
//! are delivered.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    Backoff, Delivery, DeliveryError, Enqueue, MemoryStore, NewEvent, Phase, Receipt, Relay,
    TokioTimer, Transport, async_trait,
};
use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
use outbox_tower::concurrency::ConcurrencyLayer;
use outbox_tower::deadline::DeadlineLayer;
use outbox_tower::rate::{Rate, RateLayer};
use outbox_tower::trace::TraceLayer;
use outbox_tower::{ByDestination, ServiceTransport, TransportService};
use tower::ServiceBuilder;

/// Stands for `outbox_http::Webhooks`, a broker client, anything that delivers.
struct Print;

#[async_trait]
impl Transport for Print {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let (event, attempt) = (delivery.event(), delivery.attempt());
        delivery.advance(Phase::Sending);
        println!(
            "{} → {}, attempt {attempt}",
            event.event_type, event.destination
        );
        if event.destination == "https://down.example" {
            return Err(DeliveryError::transient("connection refused"));
        }
        Ok(Receipt::new())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), outbox_core::Error> {
    let breaker = Breaker::default()
        .consecutive(2)
        .open_for(Duration::from_secs(5));
    let breaker = CircuitBreakerLayer::observed(breaker, ByDestination, |key, state| {
        println!("the circuit of {key} is {state:?}");
    });
    let circuits = breaker.circuits();
    let a_hundred = NonZeroU32::MIN.saturating_add(99);

    // From the outside in. Readiness, waiting and refusals of the outer layers charge nothing.
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new())
        .layer(breaker)
        .layer(ConcurrencyLayer::new(8, ByDestination))
        .layer(RateLayer::new(Rate::per_second(a_hundred), ByDestination))
        .layer(DeadlineLayer::new(Duration::from_secs(15), TokioTimer))
        .concurrency_limit(64)
        .service(TransportService::new(Print));

    let store = MemoryStore::new();
    let mut tx = store.begin();
    for host in ["one", "down", "two", "down", "one", "down"] {
        let event =
            NewEvent::json("RepositoryPushed", &host)?.to(format!("https://{host}.example"));
        store.enqueue(&mut tx, event).await?;
    }
    tx.commit();

    let relay = Relay::builder(store, ServiceTransport::new(stack), TokioTimer)
        .retry(Backoff::exponential())
        .per_destination(1)
        .build()?;
    let report = relay.run(tokio::time::sleep(Duration::from_secs(1))).await;
    println!("{report:?}");
    println!("{:?}", circuits.list());
    Ok(())
}
