//! The relay with a transport that does nothing, beside a bare loop of claim and settle over the
//! same store: what the relay itself costs.
//!
//! `cargo bench -p outbox-core --bench relay_throughput -- [EVENTS] [ROUNDS]`

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::channel::oneshot;
use outbox_core::{
    ClaimRequest, Delivery, DeliveryError, Enqueue, MemoryStore, NewEvent, OutboxStore, Outcome,
    Receipt, Relay, Retention, Settlement, TokioTimer, Transport, async_trait,
};

/// Says when the last event came.
struct Counting {
    /// Answers at the second poll, as a transport that waits for a network does.
    waits: bool,
    left: AtomicU64,
    done: std::sync::Mutex<Option<oneshot::Sender<()>>>,
}

#[async_trait]
impl Transport for Counting {
    async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
        if self.waits {
            tokio::task::yield_now().await;
        }
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let done = self.done.lock().expect("not poisoned").take();
            done.map(|done| done.send(()));
        }
        Ok(Receipt::new())
    }
}

#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    batch: u32,
    keys: u64,
    destinations: u64,
    waits: bool,
}

const SHAPES: [Shape; 5] = [
    Shape {
        name: "b=1000, each delivery waits",
        batch: 1_000,
        keys: 0,
        destinations: 100,
        waits: true,
    },
    Shape {
        name: "b=100",
        batch: 100,
        keys: 0,
        destinations: 1,
        waits: false,
    },
    Shape {
        name: "b=1000",
        batch: 1_000,
        keys: 0,
        destinations: 1,
        waits: false,
    },
    Shape {
        name: "b=1000, 100 destinations",
        batch: 1_000,
        keys: 0,
        destinations: 100,
        waits: false,
    },
    Shape {
        name: "b=1000, 10,000 keys",
        batch: 1_000,
        keys: 10_000,
        destinations: 1,
        waits: false,
    },
];

async fn filled(events: u64, shape: Shape) -> MemoryStore {
    let store = MemoryStore::new().retention(Retention::DeleteAtOnce);
    let payload = bytes::Bytes::from(vec![b'x'; 400]);
    for start in (0..events).step_by(1_000) {
        let batch = (start..events.min(start + 1_000)).map(|n| {
            let to = format!("https://receiver-{}.example/hooks", n % shape.destinations);
            let event = NewEvent::bytes("Measured", payload.clone()).to(to);
            if shape.keys > 0 {
                event.key(n % shape.keys)
            } else {
                event
            }
        });
        let mut tx = store.begin();
        store
            .enqueue_all(&mut tx, batch.collect())
            .await
            .expect("within the limits");
        tx.commit();
    }
    store
}

async fn by_hand(store: &MemoryStore, shape: Shape) -> u64 {
    let mut settled = 0;
    let rows = NonZeroU32::new(shape.batch).expect("not zero");
    loop {
        let request = ClaimRequest::new(rows, Duration::from_secs(60));
        let claim = store.claim(&request).await.expect("memory answers");
        if claim.events.is_empty() {
            return settled;
        }
        let batch = claim.events.iter();
        let batch: Vec<_> = batch
            .map(|c| Settlement::new(c.lease, Outcome::Published))
            .collect();
        settled += store.settle(&batch).await.expect("memory answers").len() as u64;
    }
}

async fn by_relay(store: &MemoryStore, shape: Shape, events: u64) -> u64 {
    let (done, finished) = oneshot::channel();
    let done = std::sync::Mutex::new(Some(done));
    let left = AtomicU64::new(events);
    let batch = usize::try_from(shape.batch).expect("small");
    let relay = Relay::builder(
        store.clone(),
        Arc::new(Counting {
            waits: shape.waits,
            left,
            done,
        }),
        TokioTimer,
    )
    .concurrency(batch)
    .per_destination(batch)
    .batch_size(batch)
    .build()
    .expect("valid");
    relay.run(finished.map(drop)).await.published
}

fn rate(events: u64, took: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let events = events as f64;
    events / took.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(
    clippy::disallowed_methods,
    reason = "a measurement reads the machine's clock"
)]
#[expect(clippy::print_stdout, reason = "the result")]
fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse::<u64>().ok());
    let events = numbers.next().unwrap_or(200_000);
    let rounds = numbers.next().unwrap_or(3);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("tokio");
    println!("{events} events of 400 bytes, median of {rounds}; thousand events/s");
    for shape in SHAPES {
        let (mut hand, mut relay) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let store = runtime.block_on(filled(events, shape));
            let start = Instant::now();
            assert_eq!(runtime.block_on(by_hand(&store, shape)), events);
            hand.push(rate(events, start.elapsed()));
            let store = runtime.block_on(filled(events, shape));
            let start = Instant::now();
            assert_eq!(runtime.block_on(by_relay(&store, shape, events)), events);
            relay.push(rate(events, start.elapsed()));
        }
        let (hand, relay) = (median(hand), median(relay));
        let (name, ratio) = (shape.name, relay / hand);
        println!(
            "{name:28} by hand {:7.1}  relay {:7.1}  ratio {ratio:.2}",
            hand / 1e3,
            relay / 1e3
        );
    }
}
