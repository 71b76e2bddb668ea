//! Stores, transports and observers for tests.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use outbox_core::{
    Claim, ClaimRequest, Clock, Delivery, DeliveryError, Enqueue, Error, ErrorKind, Hold, Lease,
    LeaseStatus, LeaseToken, Maintenance, MemoryStore, NewEvent, Observer, OutboxStore, Receipt,
    Relay, RelayBuilder, Settlement, Stats, Timer, TokioTimer, Transition, Transport, async_trait,
};

pub(crate) type Delivered = Result<Receipt, DeliveryError>;

/// The store's clock, driven by tokio's: a paused test moves both.
struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + self.0.elapsed()
    }
}

/// An empty store on tokio's clock.
pub(crate) fn store() -> MemoryStore {
    MemoryStore::with_clock(TokioClock(tokio::time::Instant::now()))
}

pub(crate) async fn put(store: &MemoryStore, events: impl IntoIterator<Item = NewEvent>) {
    let mut tx = store.begin();
    let events = events.into_iter().collect();
    store.enqueue_all(&mut tx, events).await.unwrap();
    tx.commit();
}

pub(crate) fn event(n: usize) -> NewEvent {
    NewEvent::bytes("T", n.to_string()).to("somewhere")
}

pub(crate) fn text(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.event().payload).into_owned()
}

pub(crate) fn payloads(store: &MemoryStore) -> Vec<String> {
    let published = store.published();
    let text = |event: &outbox_core::Event| String::from_utf8_lossy(&event.payload).into_owned();
    published.iter().map(|event| text(event)).collect()
}

pub(crate) async fn stats(store: &MemoryStore) -> Stats {
    store.stats(10_000).await.unwrap()
}

/// A relay with short waits, on tokio's clock.
pub(crate) fn relay(
    store: impl OutboxStore + 'static,
    transport: impl Transport + 'static,
) -> RelayBuilder {
    Relay::builder(store, transport, TokioTimer)
}

/// A transport from a function.
pub(crate) struct Via<F>(pub F);

#[async_trait]
impl<F, D> Transport for Via<F>
where
    F: Fn(Delivery) -> D + Send + Sync,
    D: Future<Output = Delivered> + Send + 'static,
{
    async fn deliver(&self, delivery: Delivery) -> Delivered {
        (self.0)(delivery).await
    }
}

pub(crate) fn ok() -> Delivered {
    Ok(Receipt::new())
}

pub(crate) fn no(error: DeliveryError) -> Delivered {
    Err(error)
}

/// Delivers all, and keeps the highest attempt that it saw.
pub(crate) fn highest_attempt() -> (Arc<AtomicU32>, impl Transport + 'static) {
    let highest = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&highest);
    let transport = Via(move |delivery: Delivery| {
        seen.fetch_max(delivery.attempt(), Ordering::SeqCst);
        async { ok() }
    });
    (highest, transport)
}

/// Waits until the condition holds; fails after ten (virtual) minutes.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..600_000 {
        if condition() {
            return;
        }
        pass(Duration::from_millis(1)).await;
    }
    panic!("not within ten minutes: {what}");
}

/// Lets (virtual) time pass.
pub(crate) async fn pass(period: Duration) {
    TokioTimer.sleep(period).await;
}

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// What an observer saw, one line each.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, start: &str) -> usize {
        let lines = self.lines();
        lines.iter().filter(|line| line.starts_with(start)).count()
    }

    pub(crate) fn has(&self, part: &str) -> bool {
        self.lines().iter().any(|line| line.contains(part))
    }
}

impl Observer for Seen {
    fn on(&self, transition: &Transition<'_>) {
        let line = match transition {
            Transition::Attempting { event } => format!("attempting {}", event.seq),
            Transition::Delivered { event, .. } => format!("delivered {}", event.seq),
            Transition::Retrying {
                event,
                phase,
                error,
                ..
            } => {
                format!("retrying {} {phase:?} {error}", event.seq)
            }
            Transition::Deferred { event, reason, .. } => {
                format!("deferred {} {reason}", event.seq)
            }
            Transition::Dead {
                lease,
                reason,
                error,
                ..
            } => {
                format!("dead {} {reason} {error}", lease.seq)
            }
            Transition::Released { events } => format!("released {events}"),
            Transition::Abandoned { events } => format!("abandoned {events}"),
            Transition::LeaseLost { lease } => format!("lost {}", lease.seq),
            Transition::StoreDown { error } => format!("down {error}"),
            Transition::StoreUp { .. } => "up".to_owned(),
            Transition::Claimed { events, .. } => format!("claimed {events}"),
            Transition::Settled { events, .. } => format!("settled {events}"),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// A store whose calls can fail, before or after they did their work.
#[derive(Clone)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryStore,
    state: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    before: Mutex<HashSet<&'static str>>,
    after: Mutex<HashSet<&'static str>>,
    calls: Mutex<Vec<&'static str>>,
    refuse: Mutex<Option<i64>>,
    failed: AtomicUsize,
    mute: Mutex<HashSet<&'static str>>,
}

const EVERY: [&str; 6] = [
    "claim",
    "settle",
    "extend",
    "release",
    "release_claim",
    "hold",
];

impl Faulty {
    pub(crate) fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            state: Arc::default(),
        }
    }

    /// From now on these calls fail and do nothing.
    pub(crate) fn fail_before(&self, calls: &[&'static str]) {
        self.state.before.lock().unwrap().extend(calls);
    }

    /// From now on these calls do their work, and the answer is lost.
    pub(crate) fn fail_after(&self, calls: &[&'static str]) {
        self.state.after.lock().unwrap().extend(calls);
    }

    pub(crate) fn down(&self) {
        self.fail_before(&EVERY);
    }

    pub(crate) fn up(&self) {
        self.state.before.lock().unwrap().clear();
        self.state.after.lock().unwrap().clear();
        self.state.mute.lock().unwrap().clear();
    }

    /// Settles that hold this event fail for good.
    pub(crate) fn refuse(&self, seq: Option<i64>) {
        *self.state.refuse.lock().unwrap() = seq;
    }

    /// From now on these calls do nothing and never answer.
    pub(crate) fn mute(&self, calls: &[&'static str]) {
        self.state.mute.lock().unwrap().extend(calls);
    }

    pub(crate) fn hang(&self) {
        self.mute(&EVERY);
    }

    pub(crate) fn failures(&self) -> usize {
        self.state.failed.load(Ordering::SeqCst)
    }

    pub(crate) fn calls(&self, name: &str) -> usize {
        let calls = self.state.calls.lock().unwrap();
        calls.iter().filter(|call| **call == name).count()
    }

    pub(crate) fn all_calls(&self) -> Vec<&'static str> {
        self.state.calls.lock().unwrap().clone()
    }

    async fn call<T>(
        &self,
        name: &'static str,
        work: BoxFuture<'_, Result<T, Error>>,
    ) -> Result<T, Error> {
        self.state.calls.lock().unwrap().push(name);
        let mute = self.state.mute.lock().unwrap().contains(name);
        if mute {
            std::future::pending::<()>().await;
        }
        let lost = || {
            self.state.failed.fetch_add(1, Ordering::SeqCst);
            Err(Error::new(ErrorKind::Unavailable, "connection lost"))
        };
        if self.state.before.lock().unwrap().contains(name) {
            return lost();
        }
        let answer = work.await;
        if self.state.after.lock().unwrap().contains(name) {
            return lost();
        }
        answer
    }
}

#[async_trait]
impl OutboxStore for Faulty {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        self.call("claim", self.inner.claim(request)).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        let refused = *self.state.refuse.lock().unwrap();
        if batch.iter().any(|one| Some(one.lease.seq) == refused) {
            self.state.calls.lock().unwrap().push("settle");
            return Err(Error::new(ErrorKind::Other, "no"));
        }
        self.call("settle", self.inner.settle(batch)).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        self.call("extend", self.inner.extend(leases, by)).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.call("release", self.inner.release(leases)).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.call("release_claim", self.inner.release_claim(token))
            .await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.call("hold", self.inner.hold(destination, hold)).await
    }
}
