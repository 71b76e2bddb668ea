//! What tells an idle relay to look at once instead of at the next poll.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::stream::{BoxStream, Stream, StreamExt};

/// A source of wake-ups: an in-process [`Poke`], a database's notifications.
///
/// # Contract
///
/// * A relay asks for one stream when it starts and keeps it for its life.
/// * Each item means "there may be something to claim". Several may be folded into one; one too many
///   costs a claim that finds nothing; one too few costs the poll interval.
/// * A source that loses its connection restores it by itself and then yields an item, for what it
///   missed. A stream that ends leaves the relay with polling, which never stops.
///
/// # Cancel safety
///
/// The stream is dropped with the relay's future, at any point.
///
/// # Example
///
/// ```
/// use futures::stream::{BoxStream, StreamExt};
/// use outbox_core::{Poke, Wake};
///
/// /// Wakes the relay when either of two parts of a program has stored something.
/// struct Either(Poke, Poke);
///
/// impl Wake for Either {
///     fn wakes(&self) -> BoxStream<'static, ()> {
///         futures::stream::select(self.0.wakes(), self.1.wakes()).boxed()
///     }
/// }
/// ```
pub trait Wake: Send + Sync {
    /// The stream of wake-ups from now on.
    fn wakes(&self) -> BoxStream<'static, ()>;
}

/// Wakes relays in the same process. Cheap to clone; the clones are one.
///
/// ```
/// use outbox_core::Poke;
///
/// let wake = Poke::new();
/// // The relay is built with `.wake(wake.clone())`; after a commit the producer says:
/// wake.poke();
/// ```
#[derive(Debug, Clone, Default)]
pub struct Poke {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    pokes: AtomicU64,
    listeners: AtomicU64,
    /// By the number of the listener.
    waiting: Mutex<BTreeMap<u64, Waker>>,
}

impl Poke {
    /// A handle that no relay listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every relay that listens look at once. Never blocks; call it after the commit.
    pub fn poke(&self) {
        self.shared.pokes.fetch_add(1, Ordering::AcqRel);
        let waiting = std::mem::take(&mut *self.shared.lock());
        waiting.into_values().for_each(Waker::wake);
    }
}

impl Wake for Poke {
    fn wakes(&self) -> BoxStream<'static, ()> {
        let seen = self.shared.pokes.load(Ordering::Acquire);
        let shared = Arc::clone(&self.shared);
        let listener = shared.listeners.fetch_add(1, Ordering::Relaxed);
        let pokes = Pokes {
            shared,
            listener,
            seen,
        };
        pokes.boxed()
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Yields one item for any number of pokes since the last.
struct Pokes {
    shared: Arc<Shared>,
    listener: u64,
    seen: u64,
}

impl Drop for Pokes {
    fn drop(&mut self) {
        // The waker may own the task that is being dropped: let it go without the lock.
        let waker = self.shared.lock().remove(&self.listener);
        drop(waker);
    }
}

impl Stream for Pokes {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let shared = Arc::clone(&self.shared);
        // Counted under the lock: a poke either is seen here or finds the waker.
        let mut waiting = shared.lock();
        let pokes = shared.pokes.load(Ordering::Acquire);
        if pokes != self.seen {
            self.seen = pokes;
            return Poll::Ready(Some(()));
        }
        waiting
            .entry(self.listener)
            .and_modify(|waker| waker.clone_from(cx.waker()))
            .or_insert_with(|| cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_listener_that_is_dropped_leaves_no_waker_behind() {
        let poke = Poke::new();
        let mut stays = poke.wakes();
        assert_eq!(stays.next().now_or_never(), None);
        for _ in 0..100 {
            assert_eq!(poke.wakes().next().now_or_never(), None);
        }
        assert_eq!(poke.shared.lock().len(), 1, "the one that still listens");
        poke.poke();
        assert_eq!(stays.next().now_or_never(), Some(Some(())));
    }

    #[test]
    fn folds_pokes_and_reaches_every_listener() {
        let poke = Poke::new();
        poke.poke();
        let mut streams = [poke.wakes(), poke.wakes()];
        assert!(
            streams
                .iter_mut()
                .all(|s| s.next().now_or_never().is_none())
        );
        poke.poke();
        poke.clone().poke();
        for stream in &mut streams {
            assert_eq!(stream.next().now_or_never(), Some(Some(())));
            assert_eq!(stream.next().now_or_never(), None);
        }
    }
}
