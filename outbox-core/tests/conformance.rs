//! The suite over `MemoryStore` with workers in parallel, and over a store behind `Arc<dyn …>` on
//! another runtime, where they take turns.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::conformance::{Capabilities, Harness, ReceivingHarness};
use outbox_core::{
    Accepted, DeadLetters, Destinations, Enqueue, Enqueued, Error, IdempotencyKeys, Inbox,
    InboxMessage, Locks, Maintenance, ManualClock, MemoryStore, MemoryTx, NewEvent, OutboxStore,
    Spawn, TokioSpawn,
};

/// All that a store can do, behind one pointer.
trait Whole:
    OutboxStore
    + DeadLetters
    + Maintenance
    + Destinations
    + Enqueue<MemoryTx>
    + IdempotencyKeys
    + Inbox<MemoryTx>
    + Locks
    + 'static
{
}

impl Whole for MemoryStore {}

struct Memory<S> {
    memory: MemoryStore,
    store: S,
    clock: ManualClock,
    spawner: Option<Arc<dyn Spawn>>,
}

impl Memory<MemoryStore> {
    async fn new() -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::with_clock(clock.clone());
        Self {
            store: memory.clone(),
            memory,
            clock,
            spawner: Some(Arc::new(TokioSpawn)),
        }
    }
}

impl Memory<Arc<dyn Whole>> {
    async fn erased() -> Self {
        let Memory { memory, clock, .. } = Memory::new().await;
        Self {
            store: Arc::new(memory.clone()),
            memory,
            clock,
            spawner: None,
        }
    }
}

impl<S> Harness for Memory<S>
where
    S: OutboxStore + DeadLetters + Maintenance + Destinations + Enqueue<MemoryTx> + Clone + 'static,
{
    type Store = S;
    type Tx = MemoryTx;

    fn store(&self) -> &S {
        &self.store
    }

    async fn open(&self) -> S {
        self.store.clone()
    }

    async fn begin(&self) -> MemoryTx {
        self.memory.begin()
    }

    async fn enqueue(&self, tx: &mut MemoryTx, event: NewEvent) -> Result<Enqueued, Error> {
        self.store.enqueue(tx, event).await
    }

    async fn enqueue_all(
        &self,
        tx: &mut MemoryTx,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.store.enqueue_all(tx, events).await
    }

    async fn commit(&self, tx: MemoryTx) {
        tx.commit();
    }

    async fn rollback(&self, tx: MemoryTx) {
        tx.rollback();
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.histories = 200;
        capabilities
    }

    fn spawner(&self) -> Option<Arc<dyn Spawn>> {
        self.spawner.clone()
    }
}

impl<S> ReceivingHarness for Memory<S>
where
    S: OutboxStore + DeadLetters + Maintenance + Destinations + Enqueue<MemoryTx>,
    S: IdempotencyKeys + Inbox<MemoryTx> + Locks + Clone + 'static,
{
    async fn accept(&self, tx: &mut MemoryTx, message: &InboxMessage) -> Result<Accepted, Error> {
        self.store.accept(tx, message).await
    }
}

mod memory {
    use super::Memory;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread")], Memory::new);
    outbox_core::receiving_suite!(#[tokio::test(flavor = "multi_thread")], Memory::new);
}

mod behind_a_pointer {
    use super::Memory;

    outbox_core::conformance_suite!(smol::block_on, Memory::erased);
    outbox_core::receiving_suite!(smol::block_on, Memory::erased);
}

/// A case that is written but not listed would never run.
#[test]
fn every_case_is_listed() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let list = std::fs::read_to_string(sources.join("cases.rs")).unwrap();
    for source in std::fs::read_dir(sources).unwrap() {
        let text = std::fs::read_to_string(source.unwrap().path()).unwrap();
        for case in text
            .lines()
            .filter_map(|line| line.strip_prefix("pub async fn "))
        {
            let name = case.split('<').next().unwrap();
            assert!(
                list.lines().any(|line| line.trim() == name),
                "{name} is not in cases.rs"
            );
        }
    }
}
