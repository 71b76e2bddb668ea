//! The suite that every store must pass: one test for each case, on any runtime.
//!
//! A store's author writes a [`Harness`] and one line, in an integration test:
//!
//! ```
//! use std::time::Duration;
//! use outbox_core::conformance::Harness;
//! use outbox_core::{Enqueue, Enqueued, Error, ManualClock, MemoryStore, MemoryTx, NewEvent};
//!
//! struct Memory {
//!     store: MemoryStore,
//!     clock: ManualClock,
//! }
//!
//! impl Memory {
//!     /// A fresh store for each case.
//!     async fn new() -> Self {
//!         let clock = ManualClock::new();
//!         Self { store: MemoryStore::with_clock(clock.clone()), clock }
//!     }
//! }
//!
//! impl Harness for Memory {
//!     type Store = MemoryStore;
//!     type Tx = MemoryTx;
//!
//!     fn store(&self) -> &MemoryStore { &self.store }
//!     async fn open(&self) -> MemoryStore { self.store.clone() }
//!     async fn begin(&self) -> MemoryTx { self.store.begin() }
//!     async fn enqueue(&self, tx: &mut MemoryTx, event: NewEvent) -> Result<Enqueued, Error> {
//!         self.store.enqueue(tx, event).await
//!     }
//!     async fn enqueue_all(
//!         &self,
//!         tx: &mut MemoryTx,
//!         events: Vec<NewEvent>,
//!     ) -> Result<Vec<Enqueued>, Error> {
//!         self.store.enqueue_all(tx, events).await
//!     }
//!     async fn commit(&self, tx: MemoryTx) { tx.commit() }
//!     async fn rollback(&self, tx: MemoryTx) { tx.rollback() }
//!     async fn advance(&self, by: Duration) { self.clock.advance(by) }
//! }
//!
//! outbox_core::conformance_suite!(#[tokio::test], Memory::new);
//! # fn main() {}
//! ```
//!
//! The macro expands to modules by operation with one test for each case
//! (`claim::never_hands_one_event_to_two_relays`). For two stores in one file, put each line in a
//! module of its own.
//!
//! Cases bear a store that gives fewer events than asked for, and a clock that runs while they do:
//! what they wait for is minutes away, and nothing sleeps.

mod cases;
mod harness;
mod kit;
mod model;

// The cases, for the macro. Their names say what they check.
#[doc(hidden)]
pub mod claim;
#[doc(hidden)]
pub mod dead_letters;
#[doc(hidden)]
pub mod enqueue;
#[doc(hidden)]
pub mod histories;
#[doc(hidden)]
pub mod holds;
#[doc(hidden)]
pub mod lease;
#[doc(hidden)]
pub mod maintenance;
#[doc(hidden)]
pub mod order;
#[doc(hidden)]
pub mod settle;

pub use self::harness::{Capabilities, Harness};
