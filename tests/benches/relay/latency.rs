//! From the return of the producer's commit to the delivery, on an idle system.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_core::{
    ClaimRequest, Delivery, DeliveryError, Enqueue, NewEvent, Observer, OutboxStore, Outcome, Poke,
    Receipt, RelayBuilder, Settlement, TokioTimer, Transition, Transport, async_trait,
};
use outbox_sqlx::PgStore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::setup::{Bench, relay, store};

const EVENTS: usize = 400;
const POLL: Duration = Duration::from_millis(200);

pub(crate) async fn run(bench: &Bench) {
    let store = store(&bench.pool);
    println!("\nlatency: from commit to delivery, ms: p50, p99, p50 in claim + settle round trips");
    let bare = bare(&store).await;
    let base = show("a bare claim + settle", bare, None);
    let poke = Poke::new();
    let poked = poke.clone();
    let times = measure(&store, EVENTS, |b| b.wake(poke), async || poked.poke()).await;
    show("a poke in the process", times, Some(base));
    let wake = store.wake(TokioTimer);
    let times = measure(
        &store,
        EVENTS,
        |b| b.wake(wake.clone()),
        async || {
            store.notify().await.expect("notified");
        },
    );
    show("notify() after the commit", times.await, Some(base));
    store.enable_notify_trigger().await.expect("enabled");
    let times = measure(&store, EVENTS, |b| b.wake(wake.clone()), async || {}).await;
    store.disable_notify_trigger().await.expect("disabled");
    show("the trigger", times, Some(base));
    let times = measure(&store, EVENTS / 8, |b| b, async || {}).await;
    show(&format!("polling every {POLL:?}"), times, Some(base));
}

fn show(what: &str, mut times: Vec<Duration>, base: Option<f64>) -> f64 {
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e3;
    let ratio = base.map_or(1.0, |base| at(50) / base);
    println!("{what:28} {:8.2} {:8.2} {ratio:6.2}", at(50), at(99));
    at(50)
}

async fn commit(store: &PgStore) {
    let mut tx = store.pool().begin().await.expect("begun");
    let event = NewEvent::bytes("RepositoryPushed", vec![b'x'; 400]).to("https://ci.example/hooks");
    store.enqueue(&mut tx, event).await.expect("enqueued");
    tx.commit().await.expect("committed");
}

async fn bare(store: &PgStore) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..EVENTS {
        commit(store).await;
        let begun = Instant::now();
        let request = ClaimRequest::new(NonZeroU32::MIN, Duration::from_secs(60));
        let claim = store.claim(&request).await.expect("claimed");
        let published = Settlement::new(claim.events[0].lease, Outcome::Published);
        store.settle(&[published]).await.expect("settled");
        times.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times
}

/// Says when an event came, and when it was settled.
#[derive(Clone)]
struct Tell(UnboundedSender<Instant>, UnboundedSender<()>);

#[async_trait]
impl Transport for Tell {
    async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
        let _ = self.0.send(Instant::now());
        Ok(Receipt::new())
    }
}

impl Observer for Tell {
    fn on(&self, transition: &Transition<'_>) {
        if matches!(transition, Transition::Settled { .. }) {
            let _ = self.1.send(());
        }
    }
}

async fn measure(
    store: &PgStore,
    events: usize,
    build: impl FnOnce(RelayBuilder) -> RelayBuilder,
    after: impl AsyncFn(),
) -> Vec<Duration> {
    let (deliver, mut delivered) = unbounded_channel();
    let (settle, mut settled) = unbounded_channel();
    let tell = Arc::new(Tell(deliver, settle));
    let builder = relay(store.clone(), Arc::clone(&tell), 64);
    let builder = builder.poll_interval(POLL).observer(tell);
    let relay = build(builder).build().expect("valid");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
    let mut times = Vec::new();
    for round in 0..events {
        // Any moment between two polls.
        let pause = 250 + 37 * u64::try_from(round).expect("small") % 200;
        let pause = if events < EVENTS { pause } else { pause / 10 };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        commit(store).await;
        let committed = Instant::now();
        after().await;
        let delivered = delivered.recv().await.expect("delivered");
        times.push(delivered.saturating_duration_since(committed));
        settled.recv().await.expect("settled");
    }
    drop(stop);
    running.await.expect("a relay");
    times
}
