//! The relay over `MemoryStore`, with tokio's paused clock where time matters.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;
mod waits;

mod ahead;
mod building;
mod deadlines;
mod delivery;
mod faults;
mod idle;
mod leases;
mod mocks;
mod outage;
mod runtimes;
mod shutdown;
