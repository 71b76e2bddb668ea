//! Tokio.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use super::{Spawn, Timer};

/// Tokio's clock, so that `tokio::time::pause` works in tests.
///
/// It must be used inside a tokio runtime that has its time driver enabled.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct TokioTimer;

impl Timer for TokioTimer {
    fn now(&self) -> Instant {
        ::tokio::time::Instant::now().into_std()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn sleep(&self, period: Duration) -> BoxFuture<'static, ()> {
        Box::pin(::tokio::time::sleep(period))
    }
}

/// Tasks on the tokio runtime that the caller runs in.
///
/// # Panics
///
/// [`spawn`](Spawn::spawn) panics outside a tokio runtime, as `tokio::spawn` does.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct TokioSpawn;

impl Spawn for TokioSpawn {
    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(::tokio::spawn(task));
    }
}
