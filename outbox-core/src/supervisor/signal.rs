//! A one-way signal between tasks of any runtime, and what a supervised task is told with it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::channel::oneshot;
use futures::future::{BoxFuture, FutureExt, Shared};

/// Raises a [`Signal`]: once, for ever.
///
/// Dropping the last trigger raises it too, so that nobody waits for a signal that can't come.
#[derive(Clone)]
pub struct Trigger(Arc<Raise>);

struct Raise {
    raised: Arc<AtomicBool>,
    sender: Mutex<Option<oneshot::Sender<()>>>,
}

impl Raise {
    fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        // Dropping the sender completes the receiver.
        drop(
            self.sender
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

impl Drop for Raise {
    fn drop(&mut self) {
        self.raise();
    }
}

impl Trigger {
    /// A trigger and the signal that it raises.
    pub fn new() -> (Self, Signal) {
        let (sender, receiver) = oneshot::channel::<()>();
        let raised = Arc::new(AtomicBool::new(false));
        let wait = receiver.map(drop).boxed().shared();
        let trigger = Self(Arc::new(Raise {
            raised: Arc::clone(&raised),
            sender: Mutex::new(Some(sender)),
        }));
        (trigger, Signal { raised, wait })
    }

    /// Raises the signal. Doing it again changes nothing.
    pub fn raise(&self) {
        self.0.raise();
    }
}

impl fmt::Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trigger")
            .field("raised", &self.0.raised.load(Ordering::Acquire))
            .finish()
    }
}

/// A future that ends when its [`Trigger`] is raised. Clones wait for the same trigger.
///
/// # Cancel safety
///
/// A dropped signal forgets nothing: a clone that is polled later sees the trigger raised.
#[derive(Clone)]
#[must_use = "a signal is a future: it tells nothing until it is polled"]
pub struct Signal {
    raised: Arc<AtomicBool>,
    wait: Shared<BoxFuture<'static, ()>>,
}

impl Signal {
    /// Whether the trigger was raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }
}

impl Future for Signal {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // `Shared` must not be polled again once it has ended.
        if self.is_raised() {
            return Poll::Ready(());
        }
        self.wait.poll_unpin(context)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("raised", &self.is_raised())
            .finish()
    }
}

/// Tells a supervised task when to stop. It is a future that ends when the shutdown begins.
#[derive(Debug, Clone)]
#[must_use = "a task that ignores it is abandoned at the end of its budget"]
pub struct Stop {
    pub(super) requested: Signal,
    pub(super) aborted: Signal,
}

impl Stop {
    /// Whether the shutdown has begun: start nothing new.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.requested.is_raised()
    }

    /// Ends when the budget is used up or the operator has asked a second time: leave at once. The
    /// task is dropped shortly after.
    pub fn aborted(&self) -> Signal {
        self.aborted.clone()
    }
}

impl Future for Stop {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.requested.poll_unpin(context)
    }
}
