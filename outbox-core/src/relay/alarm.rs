//! The loop's one sleep.

use std::task::Context;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::ready::Child;
use crate::Timer;

/// Wakes the loop at the earliest moment that it asked for, or sooner.
pub(super) struct Alarm {
    child: Child,
    armed: Option<(Instant, BoxFuture<'static, ()>)>,
}

impl Alarm {
    pub(super) const fn new(child: Child) -> Self {
        Self { child, armed: None }
    }

    /// To be called when the child was woken.
    pub(super) fn poll(&mut self) {
        self.child.about_to_poll();
        if let Some((_, sleep)) = &mut self.armed
            && sleep
                .poll_unpin(&mut Context::from_waker(&self.child.waker))
                .is_ready()
        {
            self.armed = None;
        }
    }

    /// Sees to it that the loop is woken no later than `at`.
    pub(super) fn arm(&mut self, timer: &dyn Timer, at: Option<Instant>, now: Instant) {
        let Some(at) = at else { return };
        if self.armed.as_ref().is_some_and(|(armed, _)| *armed <= at) {
            return;
        }
        let sleep = timer.sleep(at.saturating_duration_since(now));
        self.armed = Some((at, sleep));
        self.poll();
        if self.armed.is_none() {
            self.child.waker.wake_by_ref();
        }
    }
}
