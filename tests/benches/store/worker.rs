//! Claiming and settling through a store until nothing is left.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::future::join_all;
use outbox_core::{ClaimRequest, Claimed, LeaseStatus, OutboxStore, Outcome, Settlement};
use tokio::sync::Notify;

use crate::check::{Entry, Ticks};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// How long a relay waits after an empty claim; after each more in a row five times as long, up to the
/// poll interval.
pub(crate) const WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// It claims again sooner where the store says that there is more to look at, so many times in a row.
const SOON: Duration = Duration::from_millis(1);
const PATIENCE: u32 = 3;

/// How to drain.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) batch: u32,
    pub(crate) workers: usize,
    /// How many events there are to settle.
    pub(crate) events: u32,
    /// Whether the events without a key and those of key 0 count as well.
    pub(crate) all: bool,
}

impl Plan {
    pub(crate) const fn new(batch: u32, workers: usize, events: u32) -> Self {
        Self {
            batch,
            workers,
            events,
            all: true,
        }
    }
}

/// What was done.
pub(crate) struct Drained {
    pub(crate) took: Duration,
    pub(crate) log: Vec<Entry>,
}

/// What the workers of one drain share.
pub(crate) struct Progress {
    pub(crate) plan: Plan,
    pub(crate) ticks: Ticks,
    left: AtomicI64,
    /// When the last batch was settled.
    end: OnceLock<Instant>,
    done: Notify,
}

impl Progress {
    pub(crate) fn is_done(&self) -> bool {
        self.left.load(Ordering::SeqCst) <= 0
    }

    /// Notes a settled batch.
    pub(crate) fn settled(&self, batch: &[Entry]) {
        let counted = batch.iter().filter(|entry| self.plan.all || entry.key > 0);
        let counted = i64::try_from(counted.count()).expect("few");
        self.left.fetch_sub(counted, Ordering::SeqCst);
        if self.is_done() {
            self.end.get_or_init(Instant::now);
            self.done.notify_waiters();
        }
    }

    /// Waits, though not beyond the end of the drain.
    pub(crate) async fn wait(&self, long: Duration) {
        let done = std::pin::pin!(self.done.notified());
        if !self.is_done() {
            let _ = tokio::time::timeout(long, done).await;
        }
    }
}

/// Runs workers, each made by `worker`, until all is settled.
pub(crate) async fn work<F>(plan: Plan, worker: impl Fn(Arc<Progress>) -> F) -> Drained
where
    F: Future<Output = Vec<Entry>> + Send + 'static,
{
    let progress = Arc::new(Progress {
        plan,
        ticks: Ticks::default(),
        left: AtomicI64::new(plan.events.into()),
        end: OnceLock::new(),
        done: Notify::new(),
    });
    let begun = Instant::now();
    let tasks: Vec<_> = (0..plan.workers)
        .map(|_| tokio::spawn(worker(Arc::clone(&progress))))
        .collect();
    let mut log = Vec::new();
    for done in join_all(tasks).await {
        log.extend(done.expect("a worker"));
    }
    let end = progress.end.get().expect("done");
    Drained {
        took: end.duration_since(begun),
        log,
    }
}

/// Drains by workers with stores of their own.
pub(crate) async fn by_store<S: OutboxStore + 'static>(
    store: impl Fn() -> S,
    plan: Plan,
) -> Drained {
    work(plan, |progress| one(store(), progress)).await
}

async fn one<S: OutboxStore>(store: S, progress: Arc<Progress>) -> Vec<Entry> {
    let rows = NonZeroU32::new(progress.plan.batch).expect("rows");
    let mut log = Vec::new();
    let (mut wait, mut empties) = (WAIT, 0);
    while !progress.is_done() {
        let claim = store.claim(&ClaimRequest::new(rows, LEASE)).await;
        let claim = claim.expect("claimed");
        let events = claim.events;
        if events.is_empty() {
            empties += 1;
            let due = claim.next_due.filter(|_| empties <= PATIENCE);
            let long = due.map_or(wait, |due| due.max(SOON).min(wait));
            progress.wait(long).await;
            wait = (wait * 5).min(LONGEST_WAIT);
            continue;
        }
        (wait, empties) = (WAIT, 0);
        let claimed = progress.ticks.next();
        let published = published(&events);
        let settled = progress.ticks.next();
        let begun = log.len();
        log.extend(events.iter().map(|one| Entry {
            seq: one.lease.seq,
            key: key(one.event.key.as_deref()),
            claimed,
            settled,
        }));
        let statuses = store.settle(&published).await.expect("settled");
        assert!(statuses.iter().all(|status| *status == LeaseStatus::Ours));
        progress.settled(&log[begun..]);
    }
    log
}

pub(crate) fn published(events: &[Claimed]) -> Vec<Settlement> {
    let published = |one: &Claimed| Settlement::new(one.lease, Outcome::Published);
    events.iter().map(published).collect()
}

/// Keys are numbers from 1 on here, and one that is hot is 0.
fn key(key: Option<&str>) -> u32 {
    key.map_or(0, |key| key.parse().expect("a number"))
}
