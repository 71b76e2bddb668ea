//! The tasks that share a stop signal and a budget.

use std::time::Instant;

use futures::future::AbortHandle;

use super::signal::{Stop, Trigger};

/// How far a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nobody asked it to stop.
    Running,
    /// It has until then.
    Stopping(Instant),
    /// It was asked to leave at once, and has until then.
    Aborting(Instant),
    /// It was dropped.
    Dropped,
}

pub(super) struct Group {
    stop: Trigger,
    abort: Trigger,
    signal: Stop,
    handles: Vec<(usize, AbortHandle)>,
    stage: Stage,
}

impl Group {
    pub(super) fn new() -> Self {
        let (stop, requested) = Trigger::new();
        let (abort, aborted) = Trigger::new();
        Self {
            stop,
            abort,
            signal: Stop { requested, aborted },
            handles: Vec::new(),
            stage: Stage::Running,
        }
    }

    pub(super) fn signal(&self) -> Stop {
        self.signal.clone()
    }

    pub(super) fn add(&mut self, index: usize, handle: AbortHandle) {
        self.handles.push((index, handle));
    }

    /// The task with this index has ended.
    pub(super) fn ended(&mut self, index: usize) {
        self.handles.retain(|(other, _)| *other != index);
    }

    pub(super) fn stop(&mut self, until: Instant) {
        self.stop.raise();
        self.stage = Stage::Stopping(until);
    }

    pub(super) fn abort(&mut self, until: Instant) {
        if !matches!(self.stage, Stage::Aborting(_) | Stage::Dropped) {
            self.stop.raise();
            self.abort.raise();
            self.stage = Stage::Aborting(until);
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.handles.is_empty() || self.stage == Stage::Dropped
    }

    /// When something has to be done about it.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Stopping(at) | Stage::Aborting(at) => Some(at),
            Stage::Running | Stage::Dropped => None,
        }
    }

    /// Moves on where the deadline has passed: first the abort signal, then the drop.
    pub(super) fn advance(&mut self, now: Instant, abort_until: Instant) {
        match self.stage {
            Stage::Stopping(at) if at <= now => self.abort(abort_until),
            Stage::Aborting(at) if at <= now => self.drop_tasks(),
            _ => {}
        }
    }

    fn drop_tasks(&mut self) {
        for (_, handle) in &self.handles {
            handle.abort();
        }
        self.stage = Stage::Dropped;
    }
}

/// A supervisor that is dropped takes its tasks with it.
impl Drop for Group {
    fn drop(&mut self) {
        self.drop_tasks();
    }
}
