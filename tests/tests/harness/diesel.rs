//! What the stores of outbox-diesel have in common for the conformance suites.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::{AsyncConnection, SimpleAsyncConnection, TransactionManager};
use outbox_core::conformance::{Capabilities, Harness, ReceivingHarness};
use outbox_core::{
    Accepted, DeadLetters, Destinations, Enqueue, Enqueued, Error, IdempotencyKeys, Inbox,
    InboxMessage, Locks, Maintenance, NewEvent, OutboxStore, Spawn, TokioSpawn,
};

/// A store on a database of its own.
pub(crate) trait Subject: Send + Sync + 'static {
    type Connection: AsyncConnection + 'static;
    type Store: OutboxStore
        + DeadLetters
        + Maintenance
        + Destinations
        + IdempotencyKeys
        + Locks
        + Enqueue<Self::Connection>
        + Inbox<Self::Connection>
        + 'static;

    fn store(&self) -> &Self::Store;

    /// Another handle on the same data.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;

    /// A connection outside of the store's pool.
    fn connect(&self) -> impl Future<Output = Self::Connection> + Send;

    /// Begins a producer's transaction.
    fn begin(conn: &mut Self::Connection) -> impl Future<Output = ()> + Send {
        async {
            let begun = Transactions::<Self>::begin_transaction(conn).await;
            begun.expect("begun");
        }
    }

    /// Lets time pass.
    fn advance(&self, by: Duration) -> impl Future<Output = ()> + Send;

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

type Transactions<S> = <<S as Subject>::Connection as AsyncConnection>::TransactionManager;

/// A [`Subject`] as the suites take it.
pub(crate) struct Suite<S>(pub(crate) S);

/// A connection with an open transaction. Dropped, it is closed.
pub(crate) struct Tx<C>(C);

impl<S: Subject> Harness for Suite<S> {
    type Store = S::Store;
    type Tx = Tx<S::Connection>;

    fn store(&self) -> &S::Store {
        self.0.store()
    }

    async fn open(&self) -> S::Store {
        self.0.open().await
    }

    async fn begin(&self) -> Self::Tx {
        let mut conn = self.0.connect().await;
        S::begin(&mut conn).await;
        Tx(conn)
    }

    async fn enqueue(&self, tx: &mut Self::Tx, event: NewEvent) -> Result<Enqueued, Error> {
        self.store().enqueue(&mut tx.0, event).await
    }

    async fn enqueue_all(
        &self,
        tx: &mut Self::Tx,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.store().enqueue_all(&mut tx.0, events).await
    }

    async fn commit(&self, mut tx: Self::Tx) {
        let committed = Transactions::<S>::commit_transaction(&mut tx.0).await;
        committed.expect("committed");
    }

    async fn rollback(&self, mut tx: Self::Tx) {
        let rolled_back = Transactions::<S>::rollback_transaction(&mut tx.0).await;
        rolled_back.expect("rolled back");
    }

    async fn advance(&self, by: Duration) {
        self.0.advance(by).await;
    }

    async fn damage(&self, seq: i64) -> bool {
        let damaged = self
            .0
            .connect()
            .await
            .batch_execute(&tests::damage(seq))
            .await;
        damaged.expect("damaged");
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
        self.store().accept(&mut tx.0, message).await
    }
}
