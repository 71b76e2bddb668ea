//! Smol.

use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{Spawn, Timer};

/// The system's monotonic clock, and sleeps on smol's reactor, which starts by itself.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct SmolTimer;

impl Timer for SmolTimer {
    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, period: Duration) -> BoxFuture<'static, ()> {
        ::smol::Timer::after(period).map(drop).boxed()
    }
}

/// Tasks on smol's global executor, which starts by itself with one thread (`SMOL_THREADS` sets another
/// number).
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct SmolSpawn;

impl Spawn for SmolSpawn {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        ::smol::spawn(task).detach();
    }
}
