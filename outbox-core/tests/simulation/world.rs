//! The stage of one play: the seed's choices, the store, the clocks, the book.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt;
use outbox_core::clock::{from_micros, to_micros};
use outbox_core::{
    Backoff, Clock, DeadHeadPolicy, DeadLetterFilter, DeadLetters, Destinations, Maintenance,
    MemoryStore, Relay, Replay, Timer,
};

use super::chaos;
use super::ledger::Ledger;
use super::sim::Sim;
use super::store::Flaky;
use super::transport::{Moody, PLAYED, Watcher};

pub(crate) const LEASE: Duration = Duration::from_secs(10);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);
pub(crate) const DRAIN: Duration = Duration::from_secs(4);
pub(crate) const MAX_ATTEMPTS: u32 = 4;

/// What the seed decides before the play.
pub(crate) struct Cast {
    pub(crate) relays: u64,
    pub(crate) spawned: bool,
    pub(crate) transactions: u64,
    pub(crate) destinations: u64,
    pub(crate) keys: u64,
    pub(crate) store_fails_once_in: u64,
    pub(crate) clocks_break: bool,
    pub(crate) blocks: bool,
    /// The longest time of a delivery that succeeds; the time-out is 3,000.
    pub(crate) answer_millis: u64,
    pub(crate) outage_millis: u64,
    pub(crate) length: Duration,
    pub(crate) concurrency: u64,
    pub(crate) per_destination: u64,
    /// Payloads have one byte.
    pub(crate) claim_bytes: u64,
    pub(crate) settle_batch: u64,
}

pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) store: MemoryStore,
    pub(crate) cast: Cast,
    start: Instant,
    skew: Arc<AtomicU64>,
    down: AtomicBool,
    healed: AtomicBool,
    frozen: AtomicU64,
    ledger: Mutex<Ledger>,
}

/// The database's clock: the simulated one, and what it has jumped by.
struct DatabaseClock {
    sim: Sim,
    start: Instant,
    skew: Arc<AtomicU64>,
}

impl Clock for DatabaseClock {
    fn now(&self) -> SystemTime {
        let skew = Duration::from_millis(self.skew.load(Ordering::Relaxed));
        SystemTime::UNIX_EPOCH + (self.sim.now() - self.start) + skew
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let sim = Sim::seeded(seed);
        let start = sim.now();
        let skew: Arc<AtomicU64> = Arc::default();
        let store = MemoryStore::with_clock(DatabaseClock {
            sim: sim.clone(),
            start,
            skew: Arc::clone(&skew),
        });
        let cast = Cast {
            relays: 1 + sim.below(3),
            spawned: sim.once_in(2),
            transactions: 2 + sim.below(8),
            destinations: 1 + sim.below(3),
            keys: 1 + sim.below(4),
            store_fails_once_in: [5, 20, 100, 1_000_000][usize::try_from(sim.below(4)).unwrap()],
            clocks_break: sim.once_in(2),
            blocks: sim.once_in(3),
            answer_millis: [400, 400, 2_900][usize::try_from(sim.below(3)).unwrap()],
            outage_millis: [2_000, 12_000][usize::try_from(sim.below(2)).unwrap()],
            length: Duration::from_secs(10 + sim.below(20)),
            concurrency: 1 + sim.below(16),
            per_destination: 1 + sim.below(6),
            claim_bytes: 1 + sim.below(40),
            settle_batch: 1 + sim.below(20),
        };
        Arc::new(Self {
            sim,
            store,
            cast,
            start,
            skew,
            down: AtomicBool::new(false),
            healed: AtomicBool::new(false),
            frozen: AtomicU64::new(0),
            ledger: Mutex::default(),
        })
    }

    /// The whole play, with the checks.
    pub(crate) fn play(self: &Arc<Self>) {
        if self.cast.blocks {
            let set = self.store.set_dead_head_policy("d0", DeadHeadPolicy::Block);
            set.now_or_never().unwrap().unwrap();
        }
        let (world, sim) = (Arc::clone(self), self.sim.clone());
        sim.run(async move {
            let relays = (0..world.cast.relays).map(|n| chaos::relay(Arc::clone(&world), n));
            let relays = futures::future::join_all(relays);
            let producers = (0..2).map(|n| chaos::producer(Arc::clone(&world), n));
            let producers = futures::future::join_all(producers);
            let end = async {
                world.sim.sleep(world.cast.length).await;
                producers.await;
                world.down.store(false, Ordering::Relaxed);
                world.healed.store(true, Ordering::Relaxed);
                world.note(format_args!("the faults end"));
            };
            futures::join!(relays, end, chaos::director(Arc::clone(&world)));
            world.finish().await;
        });
        self.check();
    }

    /// With all faults gone, everything is delivered.
    async fn finish(self: &Arc<Self>) {
        let done = async {
            for _ in 0..120 {
                let replay = Replay::new(DeadLetterFilter::all());
                self.store.replay(&replay).await.unwrap();
                let stats = self.store.stats(1_000).await.unwrap();
                if (stats.pending.value, stats.dead.value) == (0, 0) {
                    return;
                }
                self.sim.sleep(Duration::from_secs(1)).await;
            }
            panic!(
                "not everything is delivered: {:?}",
                self.store.stats(1_000).await
            );
        };
        self.relay(99).run(done).await;
    }

    fn check(&self) {
        let mut published: Vec<_> = self
            .store
            .published()
            .iter()
            .map(|event| event.id)
            .collect();
        published.sort_unstable();
        let mut expected = self.ledger().expected();
        expected.sort_unstable();
        assert_eq!(
            published, expected,
            "what was committed is not what was published"
        );
    }

    pub(crate) fn relay(self: &Arc<Self>, seed: u64) -> Relay {
        let second = Duration::from_secs(1);
        let retry = Backoff::exponential().base(second / 5).cap(3 * second);
        let (store, transport) = (Flaky(Arc::clone(self)), Moody(Arc::clone(self)));
        let builder = Relay::builder(store, transport, self.sim.clone())
            .retry(retry.max_attempts(MAX_ATTEMPTS))
            .observer(Watcher(Arc::clone(self)))
            .lease(LEASE)
            .delivery_timeout(TIMEOUT)
            .drain_budget(DRAIN)
            .poll_interval(2 * second)
            .store_backoff(second / 10, 2 * second)
            .concurrency(usize::try_from(self.cast.concurrency).unwrap())
            .per_destination(usize::try_from(self.cast.per_destination).unwrap())
            .claim_bytes(self.cast.claim_bytes)
            .settle_batch(usize::try_from(self.cast.settle_batch).unwrap())
            .jitter_seed(seed);
        let builder = if self.cast.spawned {
            builder.spawn(self.sim.clone())
        } else {
            builder
        };
        builder.build().unwrap()
    }

    /// The book. A check that fails where its panic is caught (in a transport, in a task) poisons
    /// it, so that the play fails at the next entry.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        let book = self.ledger.lock();
        book.unwrap_or_else(|_| std::panic::panic_any(PLAYED))
    }

    /// For where a second panic would end the test run.
    pub(crate) fn unbroken_ledger(&self) -> Option<MutexGuard<'_, Ledger>> {
        self.ledger.lock().ok()
    }

    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let at = self.sim.now() - self.start;
        self.ledger().note(at, what);
    }

    pub(crate) fn meet(&self, kind: &'static str) {
        self.ledger().meet(kind);
    }

    /// As the store keeps it: in whole microseconds.
    pub(crate) fn database_time(&self) -> SystemTime {
        let skew = Duration::from_millis(self.skew.load(Ordering::Relaxed));
        from_micros(to_micros(
            SystemTime::UNIX_EPOCH + (self.sim.now() - self.start) + skew,
        ))
    }

    pub(crate) fn healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// How long the process has stood still so far.
    pub(crate) fn frozen(&self) -> Duration {
        Duration::from_millis(self.frozen.load(Ordering::Relaxed))
    }

    pub(crate) fn freeze(&self, millis: u64) {
        self.ledger().break_time();
        self.frozen.fetch_add(millis, Ordering::Relaxed);
        self.sim.freeze(Duration::from_millis(millis));
    }

    pub(crate) fn jump(&self, millis: u64) {
        self.ledger().break_time();
        self.skew.fetch_add(millis, Ordering::Relaxed);
    }
}
