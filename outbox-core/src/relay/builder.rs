//! Building a relay.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::settings::Settings;
use super::{Parts, Relay};
use crate::spread::Spread;
use crate::{
    Backoff, DestinationFilter, Error, Observer, OutboxStore, Poke, RetryPolicy, Spawn, Timer,
    Transport, Wake,
};

/// Settings of a [`Relay`] to be. Each has a default that suits webhooks.
#[must_use]
pub struct RelayBuilder {
    parts: Parts,
}

impl RelayBuilder {
    pub(super) fn new(
        store: Arc<dyn OutboxStore>,
        transport: Arc<dyn Transport>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        Self {
            parts: Parts {
                store,
                transport,
                timer,
                retry: Arc::new(Backoff::exponential()),
                observers: Vec::new(),
                wakes: Vec::new(),
                poke: Poke::new(),
                spawn: None,
                settings: Settings::default(),
            },
        }
    }

    /// Checks the settings and makes the relay.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig), naming the setting, its value and what is
    /// allowed.
    pub fn build(self) -> Result<Relay, Error> {
        self.parts.settings.check(&*self.parts.retry)?;
        Ok(Relay {
            parts: Arc::new(self.parts),
        })
    }

    /// What follows from a failed attempt. Default: [`Backoff::exponential`].
    pub fn retry(mut self, policy: impl RetryPolicy + 'static) -> Self {
        self.parts.retry = Arc::new(policy);
        self
    }

    /// Adds one that sees every transition. Default: none.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.parts.observers.push(Arc::new(observer));
        self
    }

    /// Adds a source of wake-ups, beside [`Relay::wake_handle`] and polling. Default: none.
    pub fn wake(mut self, wake: impl Wake + 'static) -> Self {
        self.parts.wakes.push(Arc::new(wake));
        self
    }

    /// Runs each delivery as a task of its own, so that they use every core, and some may block.
    ///
    /// How many: one fewer than the runtime has threads for tasks, as the relay needs one itself
    /// (tokio with many threads: `worker_threads`, by default the number of cores; tokio with one
    /// thread: none). The time-out of an attempt counts from its start here: one that waits for a thread
    /// until then has failed and is charged like any other. Transports that block for long belong on
    /// threads of their own (`tokio::task::spawn_blocking`).
    ///
    /// Default: deliveries share the relay's task. They must not block there: a blocked thread
    /// extends no leases, and can lose them.
    pub fn spawn(mut self, spawn: impl Spawn + 'static) -> Self {
        self.parts.spawn = Some(Arc::new(spawn));
        self
    }

    /// The most attempts at once. A run of one key counts as one. Default: 64.
    ///
    /// The relay claims what it can start, and what is about to have a slot: as many events as the
    /// slots are expected to deliver while claims are under way, none where attempts are slow. A claim
    /// goes no further ahead than twice as many events as there are slots; where attempts are quicker than
    /// claims, a second one may be under way and bring as many again, so that at most four times as many
    /// events as slots wait. What had no slot for a third of the lease after all goes back, uncharged.
    pub fn concurrency(mut self, attempts: usize) -> Self {
        self.parts.settings.concurrency = attempts;
        self
    }

    /// The most attempts at once at one destination. Default: 8.
    ///
    /// A destination at this limit is left out of claims. What a claim had brought for it already
    /// waits in the relay, at most four times [`concurrency`](Self::concurrency) events over all
    /// destinations and a third of the lease each; what is over that goes back, uncharged.
    pub fn per_destination(mut self, attempts: usize) -> Self {
        self.parts.settings.per_destination = attempts;
        self
    }

    /// The most events per claim. Default: 1,000, which [`concurrency`](Self::concurrency) mostly
    /// bounds first.
    pub fn batch_size(mut self, events: usize) -> Self {
        self.parts.settings.batch_size = events;
        self
    }

    /// The most bytes of payloads and headers held at once; the first event of a claim comes whatever
    /// its size. (Stores count payloads; by the headers of the last claim the relay asks for fewer
    /// events.) Default: 16 MiB.
    pub fn claim_bytes(mut self, bytes: u64) -> Self {
        self.parts.settings.claim_bytes = bytes;
        self
    }

    /// How long claimed events are this relay's; live attempts are extended at a third of it. What
    /// a killed relay held is delivered again after this. Default: 60 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.parts.settings.lease = lease;
        self
    }

    /// The longest attempt; shorter than the lease. Default: 30 s.
    pub fn delivery_timeout(mut self, timeout: Duration) -> Self {
        self.parts.settings.delivery_timeout = timeout;
        self
    }

    /// The longest time between two looks at the store, shortened at random by up to a fifth.
    /// Default: 1 s.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.parts.settings.poll_interval = interval;
        self
    }

    /// How long started attempts may go on after shutdown was asked for; then the store has five
    /// seconds to be told what came of the others. Default: 15 s, so that a relay keeps within the
    /// 20 s that a [`Supervisor`](crate::Supervisor) gives it.
    pub fn drain_budget(mut self, budget: Duration) -> Self {
        self.parts.settings.drain_budget = budget;
        self
    }

    /// How long a finished event may wait for others to be settled with. With nothing else to wait
    /// for it is settled at once. Default: 2 ms.
    pub fn settle_after(mut self, wait: Duration) -> Self {
        self.parts.settings.settle_after = wait;
        self
    }

    /// Settles at once where this many events are finished. Default: 100.
    pub fn settle_batch(mut self, events: usize) -> Self {
        self.parts.settings.settle_batch = events;
        self
    }

    /// The longest time for one call of the store (claim, settle, extension, release, hold). One that
    /// has not answered by then is dropped and counts as
    /// [`Unavailable`](crate::ErrorKind::Unavailable): observers are told that the store is down, and
    /// calls are made again after the [backoff](Self::store_backoff). Above zero. Default: 30 s.
    ///
    /// It ends the wait for a connection that has gone mute, on which no answer and no error comes
    /// any more. Keep it well above what the slowest claim takes.
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.parts.settings.store_timeout = timeout;
        self
    }

    /// The first and the longest delay between tries while the store fails; it doubles in between,
    /// with jitter. Default: 100 ms and 30 s.
    pub fn store_backoff(mut self, base: Duration, cap: Duration) -> Self {
        let retry = &mut self.parts.settings.store_retry;
        (retry.base, retry.cap) = (base, cap);
        self
    }

    /// Draws the random parts of waits from this seed, so that a simulation can be repeated.
    /// Default: a seed of each relay's own; two relays must not share one.
    pub fn jitter_seed(mut self, seed: u64) -> Self {
        self.parts.settings.store_retry.spread = Spread::seeded(seed);
        self
    }

    /// Only events of these types. Default: all.
    pub fn event_types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.parts.settings.event_types = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// Only events for, or not for, some destinations. Default: all.
    pub fn destinations(mut self, filter: DestinationFilter) -> Self {
        self.parts.settings.destinations = filter;
        self
    }
}

impl fmt::Debug for RelayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayBuilder")
            .field("settings", &self.parts.settings)
            .finish_non_exhaustive()
    }
}
