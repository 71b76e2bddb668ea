//! The delivery slots: each holds a run, with at most one attempt.

use std::time::Instant;

use super::attempt::Attempt;
use super::ready::{Child, Ready};
use super::runs::Run;
use super::settings::sooner;

pub(super) struct Slot<'a> {
    pub(super) child: Child,
    pub(super) work: Option<Work<'a>>,
}

/// A run in a slot.
pub(super) struct Work<'a> {
    pub(super) run: Run,
    pub(super) destination: usize,
    pub(super) state: State<'a>,
}

pub(super) enum State<'a> {
    /// The head's attempt is to begin.
    Idle,
    /// The head's lease is too old to begin; it is being extended.
    Stale,
    /// The head's lease was extended just now: begin in any case.
    Fresh,
    Live(Attempt<'a>),
}

impl State<'_> {
    pub(super) const fn live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}

pub(super) struct Slots<'a> {
    all: Vec<Slot<'a>>,
    free: Vec<usize>,
    /// No deadline comes before this.
    deadline: Option<Instant>,
    /// The index of the first slot among the loop's children.
    first: usize,
}

impl<'a> Slots<'a> {
    pub(super) const fn new(first: usize) -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            deadline: None,
            first,
        }
    }

    pub(super) const fn busy(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Puts the run into a free slot and returns the slot's number.
    pub(super) fn take(&mut self, ready: &Ready, run: Run, destination: usize) -> usize {
        let work = Some(Work {
            run,
            destination,
            state: State::Idle,
        });
        if let Some(index) = self.free.pop() {
            self.all[index].work = work;
            return index;
        }
        let index = self.all.len();
        let child = ready.child(self.first + index);
        self.all.push(Slot { child, work });
        index
    }

    pub(super) fn slot(&mut self, index: usize) -> Option<&mut Slot<'a>> {
        self.all.get_mut(index)
    }

    pub(super) fn work(&mut self, index: usize) -> Option<&mut Work<'a>> {
        self.all.get_mut(index)?.work.as_mut()
    }

    /// Empties the slot.
    pub(super) fn clear(&mut self, index: usize) -> Option<Work<'a>> {
        let work = self.all.get_mut(index)?.work.take()?;
        self.free.push(index);
        Some(work)
    }

    pub(super) const fn indices(&self) -> std::ops::Range<usize> {
        0..self.all.len()
    }

    pub(super) fn works(&self) -> impl Iterator<Item = &Work<'a>> {
        self.all.iter().filter_map(|slot| slot.work.as_ref())
    }

    pub(super) fn works_mut(&mut self) -> impl Iterator<Item = (usize, &mut Work<'a>)> {
        let all = self.all.iter_mut().enumerate();
        all.filter_map(|(index, slot)| Some((index, slot.work.as_mut()?)))
    }

    /// An attempt with this deadline has begun.
    pub(super) fn began(&mut self, deadline: Instant) {
        self.deadline = sooner(self.deadline, Some(deadline));
    }

    pub(super) const fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The slots whose attempt has run out of time.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<usize> {
        if self.deadline.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let mut overdue = Vec::new();
        let mut next = None;
        for (index, work) in self.works_mut() {
            if let State::Live(attempt) = &work.state {
                if attempt.deadline <= now {
                    overdue.push(index);
                } else {
                    next = sooner(next, Some(attempt.deadline));
                }
            }
        }
        self.deadline = next;
        overdue
    }
}
