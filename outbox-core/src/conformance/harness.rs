//! What the suite needs to know about a store.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Accepted, DeadLetters, Destinations, Enqueued, Error, IdempotencyKeys, InboxMessage, Locks,
    Maintenance, NewEvent, OutboxStore, Spawn,
};

/// A store under test, fresh and alone on its data. Its methods may panic: that fails the case.
pub trait Harness: Send + Sync + 'static {
    /// The store.
    type Store: OutboxStore + DeadLetters + Maintenance + Destinations + 'static;

    /// A producer's transaction: whatever [`enqueue`](Self::enqueue) can work with. Dropping it
    /// rolls back.
    type Tx: Send;

    /// The store; best with a pool of one connection, since that has to do.
    fn store(&self) -> &Self::Store;

    /// Another handle on the same data, as another process would open it.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;

    /// Begins a transaction, on a connection that is not the store's.
    fn begin(&self) -> impl Future<Output = Self::Tx> + Send;

    /// Calls the store's [`Enqueue::enqueue`](crate::Enqueue::enqueue) in the transaction.
    fn enqueue(
        &self,
        tx: &mut Self::Tx,
        event: NewEvent,
    ) -> impl Future<Output = Result<Enqueued, Error>> + Send;

    /// Calls the store's [`Enqueue::enqueue_all`](crate::Enqueue::enqueue_all) in the transaction.
    fn enqueue_all(
        &self,
        tx: &mut Self::Tx,
        events: Vec<NewEvent>,
    ) -> impl Future<Output = Result<Vec<Enqueued>, Error>> + Send;

    /// Commits.
    fn commit(&self, tx: Self::Tx) -> impl Future<Output = ()> + Send;

    /// Rolls back.
    fn rollback(&self, tx: Self::Tx) -> impl Future<Output = ()> + Send;

    /// Lets time pass without waiting: moves the clock that was given to the store, or moves every
    /// stored instant back. Some cases drop calls of the store and then let time pass: where the
    /// database may still be at work on such a call, this must bear it (a deadlock, say).
    fn advance(&self, by: Duration) -> impl Future<Output = ()> + Send;

    /// Damages an open row so that it makes no event (headers that are no JSON, say). False where
    /// the store has no such thing.
    fn damage(&self, seq: i64) -> impl Future<Output = bool> + Send {
        let _ = seq;
        async { false }
    }

    /// What the store can't do, and how much the long cases do.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Runs workers in parallel. `None`: they take turns in the test's own task.
    fn spawner(&self) -> Option<Arc<dyn Spawn>> {
        None
    }
}

/// A store that keeps idempotency keys, inbox ids and locks too: for
/// [`receiving_suite!`](crate::receiving_suite).
pub trait ReceivingHarness: Harness<Store: IdempotencyKeys + Locks> {
    /// Calls the store's [`Inbox::accept`](crate::Inbox::accept) in the transaction.
    fn accept(
        &self,
        tx: &mut Self::Tx,
        message: &InboxMessage,
    ) -> impl Future<Output = Result<Accepted, Error>> + Send;
}

/// What a store can't do, and how much the long cases do.
///
/// ```
/// # use outbox_core::conformance::Capabilities;
/// let mut sqlite = Capabilities::default();
/// sqlite.concurrent_transactions = false;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Claims and other transactions go on while a producer's transaction is open. Default: true.
    /// False for SQLite, and where producers use the store's one connection.
    pub concurrent_transactions: bool,
    /// Published events are kept until they are pruned. Default: true.
    pub keeps_published: bool,
    /// The events of the cases about a backlog. Default: 300.
    pub backlog: usize,
    /// The workers of the cases about contention. Default: 8.
    pub workers: usize,
    /// The random histories that are compared with the model. Default: 20.
    pub histories: u32,
    /// The steps of each history. Default: 300.
    pub steps: u32,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            concurrent_transactions: true,
            keeps_published: true,
            backlog: 300,
            workers: 8,
            histories: 20,
            steps: 300,
        }
    }
}
