//! The store in memory: the reference for what every other store does.

mod claim;
mod dead_letters;
mod destinations;
mod idempotency;
mod locks;
mod maintenance;
mod settle;
mod state;
mod tx;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use self::state::State;
use crate::clock::to_micros;
use crate::{
    BlockedKey, BlockedKeyPage, Claim, ClaimRequest, Clock, DeadHeadPolicy, DeadLetter,
    DeadLetterFilter, DeadLetters, DestinationPage, DestinationState, Destinations, Enqueue,
    Enqueued, Error, ErrorKind, Event, EventLimits, Hold, Lease, LeaseStatus, LeaseToken,
    Maintenance, NewEvent, OutboxStore, Page, Prune, Pruned, Replay, Settlement, Stats,
    SystemClock,
};

pub use self::tx::MemoryTx;

/// What becomes of an event that was published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retention {
    /// It stays in the history until [pruned](Maintenance::prune).
    #[default]
    Keep,
    /// It is deleted at once.
    DeleteAtOnce,
}

/// A store in memory, for tests and for learning. Clones share the events.
///
/// It does what the stores on databases do, with the same words; it only forgets everything at the
/// end of the process. The cost of a claim does not depend on the number of waiting events, unless
/// it filters by event type: then it looks through those that it does not want.
///
/// ```
/// use outbox_core::{Enqueue, Maintenance, MemoryStore, NewEvent};
///
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let mut tx = store.begin();
/// store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("somewhere")).await?;
/// drop(tx); // rolled back
/// assert_eq!(store.stats(100).await?.pending.value, 0);
/// # Ok::<(), outbox_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    limits: EventLimits,
    retention: Retention,
}

struct Shared {
    clock: Box<dyn Clock>,
    state: Mutex<State>,
    keys: Mutex<idempotency::Keys>,
    locks: Mutex<locks::LockTable>,
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// An empty store on this clock: a [`ManualClock`](crate::ManualClock), say.
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock: Box::new(clock),
                state: Mutex::default(),
                keys: Mutex::default(),
                locks: Mutex::default(),
            }),
            limits: EventLimits::default(),
            retention: Retention::default(),
        }
    }

    /// What an event may hold.
    #[must_use]
    pub const fn limits(mut self, limits: EventLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What becomes of published events. Default: they are kept.
    #[must_use]
    pub const fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Begins a producer's transaction.
    pub fn begin(&self) -> MemoryTx {
        MemoryTx::new(Arc::clone(&self.shared))
    }

    /// The published events that are kept, in the order in which they were settled.
    #[must_use]
    pub fn published(&self) -> Vec<Arc<Event>> {
        let state = self.shared.lock();
        let published = state.history.iter();
        published.map(|event| Arc::clone(&event.event)).collect()
    }

    /// The dead letters that an operator discarded and that are kept, each with the reason given.
    #[must_use]
    pub fn discarded(&self) -> Vec<(Arc<Event>, String)> {
        let state = self.shared.lock();
        let discarded = state.discards.iter();
        discarded
            .map(|event| (Arc::clone(&event.event), event.reason.clone()))
            .collect()
    }

    /// The state, with all that has fallen due by now in its queue.
    fn now(&self) -> MutexGuard<'_, State> {
        self.shared.now()
    }
}

impl Shared {
    /// No code of the caller runs under the lock, so that a poisoned one is still whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> MutexGuard<'_, State> {
        let now = to_micros(self.clock.now());
        let mut state = self.lock();
        state.wake(now);
        state
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("limits", &self.limits)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[async_trait]
impl Enqueue<MemoryTx> for MemoryStore {
    async fn enqueue(&self, tx: &mut MemoryTx, event: NewEvent) -> Result<Enqueued, Error> {
        self.limits.check(&event)?;
        self.own(tx)?;
        tx.stage(&mut self.now(), event)
    }

    async fn enqueue_all(
        &self,
        tx: &mut MemoryTx,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        events
            .iter()
            .try_for_each(|event| self.limits.check(event))?;
        self.own(tx)?;
        let mut state = self.now();
        let events = events.into_iter();
        events.map(|event| tx.stage(&mut state, event)).collect()
    }
}

impl MemoryStore {
    fn own(&self, tx: &MemoryTx) -> Result<(), Error> {
        if tx.belongs_to(&self.shared) {
            return Ok(());
        }
        let problem = "the transaction belongs to another store";
        Err(Error::new(ErrorKind::Unsupported, problem))
    }
}

#[async_trait]
impl OutboxStore for MemoryStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        Ok(claim::claim(&mut self.now(), request))
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        let mut state = self.now();
        let batch = batch.iter();
        Ok(batch.map(|one| state.settle(one, self.retention)).collect())
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        let mut state = self.now();
        Ok(leases
            .iter()
            .map(|lease| state.extend(*lease, by))
            .collect())
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        let mut state = self.now();
        Ok(leases.iter().map(|lease| state.release(*lease)).collect())
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        Ok(self.now().release_claim(token))
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.now().hold(destination, &hold);
        Ok(())
    }
}

#[async_trait]
impl DeadLetters for MemoryStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        Ok(self.now().list(filter, page))
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        Ok(self.now().dead.get(&seq).map(state::DeadRow::letter))
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        Ok(self.now().replay(replay))
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        Ok(self.now().discard(filter, rows, reason))
    }
}

#[async_trait]
impl Maintenance for MemoryStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        Ok(self.now().stats(count_limit))
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        Ok(self.now().prune(prune))
    }
}

#[async_trait]
impl Destinations for MemoryStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        self.now().set_policy(destination, policy);
        Ok(())
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        Ok(self.now().destinations(page))
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        Ok(self.now().blocked_keys(page))
    }
}
