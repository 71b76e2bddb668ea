//! Which of the loop's children were woken.
//!
//! Each child has an index and one waker for the loop's life, so that a delivery costs no waker of
//! its own, a child is polled only when woken, and a slot can be cleared at any time (a late wake of
//! a cleared slot polls nothing).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use futures::task::AtomicWaker;

/// The woken children of one loop.
#[derive(Debug, Default)]
pub(super) struct Ready {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    woken: Mutex<Vec<usize>>,
    parent: AtomicWaker,
}

/// A child's side: its waker, and the mark that it is in the list.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) waker: Waker,
    mark: Arc<Mark>,
}

#[derive(Debug)]
struct Mark {
    index: usize,
    woken: AtomicBool,
    shared: Arc<Shared>,
}

impl Ready {
    /// A child whose wake-ups are reported as `index`.
    pub(super) fn child(&self, index: usize) -> Child {
        let shared = Arc::clone(&self.shared);
        let mark = Arc::new(Mark {
            index,
            woken: AtomicBool::new(false),
            shared,
        });
        Child {
            waker: Waker::from(Arc::clone(&mark)),
            mark,
        }
    }

    /// From now on a woken child wakes this task.
    pub(super) fn register(&self, waker: &Waker) {
        self.shared.parent.register(waker);
    }

    /// Moves the woken children's indices into `into`, which is cleared first.
    pub(super) fn take(&self, into: &mut Vec<usize>) {
        into.clear();
        std::mem::swap(&mut *self.shared.lock(), into);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shared.lock().is_empty()
    }
}

impl Child {
    /// To be called before each poll: wakes from here on count again.
    pub(super) fn about_to_poll(&self) {
        self.mark.woken.store(false, Ordering::Release);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.shared.lock().push(self.index);
            self.shared.parent.wake();
        }
    }
}
