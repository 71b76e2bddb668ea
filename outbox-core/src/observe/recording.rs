//! What happened, for tests.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::{Observer, Transition};

/// Keeps every transition in short, and lets a test wait for one instead of sleeping. Clones share
/// the record.
///
/// ```
/// # futures::executor::block_on(async {
/// use outbox_core::{Observer, RecordingObserver, Transition};
///
/// let seen = RecordingObserver::new();
/// // relay.observer(seen.clone()) …
/// seen.on(&Transition::Released { events: 2 });
/// seen.wait_for("released", 1).await;
/// assert_eq!(seen.names(), ["released"]);
/// # });
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecordingObserver(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    seen: Vec<Recorded>,
    waiting: Vec<Waker>,
}

/// A transition in short.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// As [`Transition::name`].
    pub name: &'static str,
    /// The event's number, where it is about one event.
    pub seq: Option<i64>,
    /// The whole transition as `Debug` prints it.
    pub debug: String,
}

impl RecordingObserver {
    /// Nothing recorded.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All transitions so far.
    #[must_use]
    pub fn all(&self) -> Vec<Recorded> {
        self.state().seen.clone()
    }

    /// The names of all transitions so far.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.state().seen.iter().map(|seen| seen.name).collect()
    }

    /// How many transitions with this name there were.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.state().count(name)
    }

    /// Ends when there were at least `count` transitions with this name.
    pub fn wait_for(&self, name: &'static str, count: usize) -> impl Future<Output = ()> + use<> {
        let state = Arc::clone(&self.0);
        poll_fn(move |context| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.count(name) >= count {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&self, name: &str) -> usize {
        self.seen.iter().filter(|seen| seen.name == name).count()
    }
}

impl Observer for RecordingObserver {
    fn on(&self, transition: &Transition<'_>) {
        let recorded = Recorded {
            name: transition.name(),
            seq: transition.seq(),
            debug: format!("{transition:?}"),
        };
        let waiting = {
            let mut state = self.state();
            state.seen.push(recorded);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}
