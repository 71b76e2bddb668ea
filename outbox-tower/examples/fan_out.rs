//! One transport in front of two: an event is delivered when both have it.
//!
//! Where one fails, the event is tried again at both, so that the one that has it gets it twice: it
//! de-duplicates by the event's id. Where that is too much, enqueue two events in the one
//! transaction, one for each destination; each is then tried again on its own.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::atomic::{AtomicBool, Ordering};

use outbox_core::{
    Delivery, DeliveryError, Enqueue, MemoryStore, NewEvent, Receipt, Relay, TokioTimer, Transport,
    async_trait,
};

struct FanOut<A, B> {
    first: A,
    second: B,
}

#[async_trait]
impl<A: Transport, B: Transport> Transport for FanOut<A, B> {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        // Both at once, and both to their end: an error of one drops no attempt of the other.
        let first = self.first.deliver(delivery.clone());
        let second = self.second.deliver(delivery);
        match futures::join!(first, second) {
            (Ok(_), Ok(_)) => Ok(Receipt::new()),
            (Err(error), _) | (_, Err(error)) => Err(worst(error)),
        }
    }
}

/// The other half may have the event: what one half did not attempt is an attempt all the same.
fn worst(error: DeliveryError) -> DeliveryError {
    DeliveryError::transient("one of two did not take it").with_source(error)
}

struct Print(&'static str, AtomicBool);

#[async_trait]
impl Transport for Print {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let Self(name, fails) = self;
        if fails.swap(false, Ordering::SeqCst) {
            println!("{name}: not now");
            return Err(DeliveryError::transient("not now"));
        }
        println!(
            "{name}: {} {}",
            delivery.event().event_type,
            delivery.event().id
        );
        Ok(Receipt::new())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), outbox_core::Error> {
    let store = MemoryStore::new();
    let mut tx = store.begin();
    let event = NewEvent::bytes("RepositoryPushed", "{}").to("both");
    store.enqueue(&mut tx, event).await?;
    tx.commit();
    let both = FanOut {
        first: Print("archive", AtomicBool::new(false)),
        second: Print("search", AtomicBool::new(true)),
    };
    let relay = Relay::builder(store, both, TokioTimer).build()?;
    let report = relay
        .run(tokio::time::sleep(std::time::Duration::from_secs(3)))
        .await;
    println!("{report:?}");
    Ok(())
}
