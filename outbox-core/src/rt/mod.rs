//! The seam to the runtime, and what fills it for two of them.

#[cfg(feature = "smol")]
mod smol;
#[cfg(feature = "tokio")]
mod tokio;

use std::time::{Duration, Instant};

use futures::future::BoxFuture;

#[cfg(feature = "smol")]
pub use self::smol::{SmolSpawn, SmolTimer};
#[cfg(feature = "tokio")]
pub use self::tokio::{TokioSpawn, TokioTimer};

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
/// Those for tokio and smol come with the features of the same names. By hand, on whatever sleeps:
///
/// ```
/// use std::time::{Duration, Instant};
/// use futures::future::{BoxFuture, FutureExt};
/// use outbox_core::Timer;
///
/// #[derive(Debug, Clone, Copy)]
/// struct AnyTimer;
///
/// impl Timer for AnyTimer {
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
/// Those for tokio and smol come with the features of the same names. By hand:
///
/// ```
/// use futures::future::BoxFuture;
/// use outbox_core::Spawn;
///
/// #[derive(Debug, Clone, Copy)]
/// struct AnySpawn;
///
/// impl Spawn for AnySpawn {
///     fn spawn(&self, task: BoxFuture<'static, ()>) { smol::spawn(task).detach(); }
/// }
/// ```
pub trait Spawn: Send + Sync {
    /// Starts the task.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}
