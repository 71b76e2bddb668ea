//! A relay over layers: one bad destination among many.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outbox_core::{
    Backoff, Delivery, DeliveryError, Enqueue, MemoryStore, NewEvent, Observer, Receipt, Relay,
    TokioTimer, Transition, Transport, async_trait,
};
use outbox_tower::breaker::{Breaker, CircuitBreakerLayer};
use outbox_tower::concurrency::ConcurrencyLayer;
use outbox_tower::deadline::DeadlineLayer;
use outbox_tower::{ByDestination, ServiceTransport, TransportService};
use tokio::sync::oneshot;
use tower::ServiceBuilder;

const OTHERS: usize = 99;
const EACH: usize = 20;
const BACKLOG: usize = 5_000;

#[derive(Clone, Copy)]
enum Bad {
    Fails,
    Hangs,
    Slow(Duration),
}

/// Answers at once, but for one destination.
#[derive(Clone)]
struct Receivers {
    bad: Bad,
    calls: Arc<Mutex<HashMap<String, usize>>>,
}

#[async_trait]
impl Transport for Receivers {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let destination = delivery.event().destination.clone();
        *self.calls.lock().unwrap().entry(destination).or_default() += 1;
        if delivery.event().destination == "bad" {
            match self.bad {
                Bad::Fails => return Err(DeliveryError::transient("refused")),
                Bad::Hangs => std::future::pending::<()>().await,
                Bad::Slow(takes) => tokio::time::sleep(takes).await,
            }
        }
        Ok(Receipt::new())
    }
}

/// Counts claimed events, and says when all of the others' are delivered.
#[derive(Default)]
struct Progress {
    claimed: AtomicUsize,
    delivered: AtomicUsize,
    done: Mutex<Option<oneshot::Sender<()>>>,
}

impl Observer for Progress {
    fn on(&self, transition: &Transition<'_>) {
        match transition {
            Transition::Claimed { events, .. } => {
                self.claimed.fetch_add(*events, Ordering::SeqCst);
            }
            Transition::Delivered { event, .. }
                if event.destination != "bad"
                    && self.delivered.fetch_add(1, Ordering::SeqCst) + 1 == OTHERS * EACH =>
            {
                self.done.lock().unwrap().take().unwrap().send(()).unwrap();
            }
            _ => {}
        }
    }
}

/// Ninety-nine destinations behind the backlog of a bad one: how many attempts that one got, how
/// many events were claimed in all, and how long the others took.
async fn run(bad: Bad) -> (usize, usize, Duration) {
    let store = MemoryStore::new();
    let mut tx = store.begin();
    for _ in 0..BACKLOG {
        let event = NewEvent::bytes("T", "x").to("bad");
        store.enqueue(&mut tx, event).await.unwrap();
    }
    for n in 0..OTHERS * EACH {
        let event = NewEvent::bytes("T", "x").to(format!("good {}", n % OTHERS));
        store.enqueue(&mut tx, event).await.unwrap();
    }
    tx.commit();
    let receivers = Receivers {
        bad,
        calls: Arc::default(),
    };
    let stack = ServiceBuilder::new()
        .layer(CircuitBreakerLayer::per_destination(
            Breaker::default().consecutive(3),
        ))
        .layer(ConcurrencyLayer::new(4, ByDestination))
        .layer(DeadlineLayer::new(Duration::from_millis(300), TokioTimer))
        .service(TransportService::new(receivers.clone()));
    let (sender, done) = oneshot::channel();
    let progress = Arc::new(Progress::default());
    *progress.done.lock().unwrap() = Some(sender);
    let relay = Relay::builder(store, ServiceTransport::new(stack), TokioTimer)
        .retry(Backoff::exponential())
        .observer(Arc::clone(&progress))
        .batch_size(100)
        .concurrency(64)
        .per_destination(8)
        .build()
        .unwrap();
    let began = Instant::now();
    let shutdown = async move {
        let limit = tokio::time::timeout(Duration::from_secs(30), done);
        limit.await.unwrap().unwrap();
    };
    relay.run(shutdown).await;
    let took = began.elapsed();
    let attempts = receivers.calls.lock().unwrap()["bad"];
    (attempts, progress.claimed.load(Ordering::SeqCst), took)
}

#[tokio::test]
async fn a_destination_that_is_down_holds_up_no_other_and_fills_no_claims() {
    let (attempts, claimed, took) = run(Bad::Fails).await;
    assert!(attempts <= 20, "{attempts} attempts at the bad one");
    let wasted = claimed.saturating_sub(OTHERS * EACH);
    assert!(wasted <= 500, "{wasted} of {BACKLOG} claimed in vain");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_destination_that_hangs_holds_up_no_other_and_fills_no_claims() {
    let (attempts, claimed, took) = run(Bad::Hangs).await;
    assert!(attempts <= 20, "{attempts} attempts at the bad one");
    let wasted = claimed.saturating_sub(OTHERS * EACH);
    assert!(wasted <= 500, "{wasted} of {BACKLOG} claimed in vain");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_destination_that_is_slow_holds_up_no_other_and_fills_no_claims() {
    let answers_after = Duration::from_millis(200); // within its deadline: its circuit stays closed
    let (attempts, claimed, took) = run(Bad::Slow(answers_after)).await;
    let in_vain = claimed.saturating_sub(OTHERS * EACH + attempts);
    assert!(in_vain <= 500, "{in_vain} of {BACKLOG} claimed in vain");
    assert!(took < Duration::from_secs(5), "{took:?}");
}
