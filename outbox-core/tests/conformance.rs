//! The suite over `MemoryStore`, and over a store behind `Arc<dyn …>`.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::conformance::{Capabilities, Harness};
use outbox_core::{
    DeadLetters, Destinations, Enqueue, Enqueued, Error, Maintenance, ManualClock, MemoryStore,
    MemoryTx, NewEvent, OutboxStore, Spawn, TokioSpawn,
};

/// All that a store can do, behind one pointer.
trait Whole:
    OutboxStore + DeadLetters + Maintenance + Destinations + Enqueue<MemoryTx> + 'static
{
}

impl Whole for MemoryStore {}

struct Memory<S> {
    memory: MemoryStore,
    store: S,
    clock: ManualClock,
}

impl Memory<MemoryStore> {
    async fn new() -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::with_clock(clock.clone());
        let store = memory.clone();
        Self {
            memory,
            store,
            clock,
        }
    }
}

impl Memory<Arc<dyn Whole>> {
    async fn erased() -> Self {
        let Memory {
            memory,
            store,
            clock,
        } = Memory::new().await;
        let store: Arc<dyn Whole> = Arc::new(store);
        Self {
            memory,
            store,
            clock,
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
        Some(Arc::new(TokioSpawn))
    }
}

mod memory {
    use super::Memory;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread")], Memory::new);
}

mod behind_a_pointer {
    use super::Memory;

    outbox_core::conformance_suite!(#[tokio::test(flavor = "multi_thread")], Memory::erased);
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
