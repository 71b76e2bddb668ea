//! The seam to the runtime.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;

/// The clock and the sleep of whatever runtime drives the relay.
///
/// # Contract
///
/// `now` never goes back, and a sleep of `d` ends when `now` has advanced by `d`: a test clock moves
/// both.
///
/// # Cancel safety
///
/// A dropped sleep frees its timer.
///
/// # Example
///
/// A timer for smol:
///
/// ```
/// use std::time::{Duration, Instant};
/// use futures::future::{BoxFuture, FutureExt};
/// use outbox_core::Timer;
///
/// #[derive(Debug, Clone, Copy)]
/// struct SmolTimer;
///
/// impl Timer for SmolTimer {
///     fn now(&self) -> Instant { Instant::now() }
///     fn sleep(&self, d: Duration) -> BoxFuture<'static, ()> { smol::Timer::after(d).map(drop).boxed() }
/// }
/// ```
pub trait Timer: Send + Sync {
    /// The time now, on a clock that never goes back.
    fn now(&self) -> Instant;

    /// Ends when `period` has passed.
    fn sleep(&self, period: Duration) -> BoxFuture<'static, ()>;
}

/// Starts tasks on whatever runtime the application uses.
///
/// # Contract
///
/// The task is polled until it ends or the runtime goes down, whatever becomes of the caller. The
/// library's tasks catch their own panics and are made abortable before they are handed over.
///
/// # Example
///
/// Tasks for smol:
///
/// ```
/// use futures::future::BoxFuture;
/// use outbox_core::Spawn;
///
/// #[derive(Debug, Clone, Copy)]
/// struct SmolSpawn;
///
/// impl Spawn for SmolSpawn {
///     fn spawn(&self, task: BoxFuture<'static, ()>) { smol::spawn(task).detach(); }
/// }
/// ```
pub trait Spawn: Send + Sync {
    /// Starts the task.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// Tokio's clock, so that `tokio::time::pause` works in tests.
///
/// It must be used inside a tokio runtime that has its time driver enabled.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct TokioTimer;

#[cfg(feature = "tokio")]
impl Timer for TokioTimer {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn sleep(&self, period: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(period))
    }
}

/// Tasks on the tokio runtime that the caller runs in.
///
/// # Panics
///
/// [`spawn`](Spawn::spawn) panics outside a tokio runtime, as `tokio::spawn` does.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct TokioSpawn;

#[cfg(feature = "tokio")]
impl Spawn for TokioSpawn {
    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }
}
