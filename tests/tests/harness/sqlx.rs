//! What the stores of outbox-sqlx have in common for the conformance suites.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::conformance::{Capabilities, Harness, ReceivingHarness};
use outbox_core::{
    Accepted, DeadLetters, Destinations, Enqueue, Enqueued, Error, IdempotencyKeys, Inbox,
    InboxMessage, Locks, Maintenance, NewEvent, OutboxStore, Spawn, TokioSpawn,
};
use outbox_sqlx::sqlx::{Database, Transaction};

/// A store on a database of its own.
pub(crate) trait Subject: Send + Sync + 'static {
    type Database: Database;
    type Store: OutboxStore
        + DeadLetters
        + Maintenance
        + Destinations
        + IdempotencyKeys
        + Locks
        + Enqueue<<Self::Database as Database>::Connection>
        + Inbox<<Self::Database as Database>::Connection>
        + 'static;

    fn store(&self) -> &Self::Store;

    /// Another handle on the same data.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;

    /// Begins a producer's transaction.
    fn begin(&self) -> impl Future<Output = Transaction<'static, Self::Database>> + Send;

    /// Runs statements.
    fn run(&self, statements: String) -> impl Future<Output = ()> + Send;

    /// Lets time pass.
    fn advance(&self, by: Duration) -> impl Future<Output = ()> + Send;

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

/// A [`Subject`] as the suites take it.
pub(crate) struct Suite<S>(pub(crate) S);

impl<S: Subject> Harness for Suite<S> {
    type Store = S::Store;
    type Tx = Transaction<'static, S::Database>;

    fn store(&self) -> &S::Store {
        self.0.store()
    }

    async fn open(&self) -> S::Store {
        self.0.open().await
    }

    async fn begin(&self) -> Self::Tx {
        self.0.begin().await
    }

    async fn enqueue(&self, tx: &mut Self::Tx, event: NewEvent) -> Result<Enqueued, Error> {
        self.store().enqueue(tx, event).await
    }

    async fn enqueue_all(
        &self,
        tx: &mut Self::Tx,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.store().enqueue_all(tx, events).await
    }

    async fn commit(&self, tx: Self::Tx) {
        tx.commit().await.expect("committed");
    }

    async fn rollback(&self, tx: Self::Tx) {
        tx.rollback().await.expect("rolled back");
    }

    async fn advance(&self, by: Duration) {
        self.0.advance(by).await;
    }

    async fn damage(&self, seq: i64) -> bool {
        self.0.run(tests::damage(seq)).await;
        true
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn spawner(&self) -> Option<Arc<dyn Spawn>> {
        Some(Arc::new(TokioSpawn))
    }
}

impl<S: Subject> ReceivingHarness for Suite<S> {
    async fn accept(&self, tx: &mut Self::Tx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.store().accept(tx, message).await
    }
}
