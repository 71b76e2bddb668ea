//! What is finished and waits to be settled, in groups.
//!
//! One call is under way at a time, and what failed goes before what is new: events of a key are
//! settled in the order in which they were delivered, so that a crash in between repeats them in
//! that order too.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::settings::{StoreRetry, later, sooner};
use crate::Settlement;

/// One settle call's worth.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Settlement>,
    /// Some of it has a key: more of that key may be claimable once it is settled.
    pub(super) keyed: bool,
    refusals: u32,
}

#[derive(Debug)]
pub(super) struct Settles {
    wait: Duration,
    size: usize,
    open: Batch,
    since: Option<Instant>,
    /// Failed, or the parts of what was refused; in order.
    again: VecDeque<Batch>,
    /// Single events that the store refuses, each until its next try.
    refused: Vec<(Instant, Batch)>,
    in_flight: bool,
    unsettled: usize,
}

impl Settles {
    pub(super) fn new(wait: Duration, size: usize) -> Self {
        Self {
            wait,
            size,
            open: Batch::default(),
            since: None,
            again: VecDeque::new(),
            refused: Vec::new(),
            in_flight: false,
            unsettled: 0,
        }
    }

    /// Events without an answer yet.
    pub(super) const fn unsettled(&self) -> usize {
        self.unsettled
    }

    /// Whether something is on its way, or waits for nothing but the store.
    pub(super) fn pending(&self) -> bool {
        self.in_flight || !self.open.entries.is_empty() || !self.again.is_empty()
    }

    /// Adds one. What is added between two calls of [`next`](Self::next) stays together.
    pub(super) fn push(&mut self, settlement: Settlement, keyed: bool, now: Instant) {
        self.since.get_or_insert(now);
        self.open.entries.push(settlement);
        self.open.keyed |= keyed;
        self.unsettled += 1;
    }

    /// The batch to send now, if any. `hurry`: nothing is gained by waiting.
    pub(super) fn next(&mut self, now: Instant, hurry: bool) -> Option<Batch> {
        if self.in_flight {
            return None;
        }
        let batch = if let Some(batch) = self.again.pop_front() {
            batch
        } else if let Some(index) = self.refused.iter().position(|(at, _)| *at <= now) {
            self.refused.swap_remove(index).1
        } else if self.fresh_due(now, hurry) {
            self.since = None;
            std::mem::take(&mut self.open)
        } else {
            return None;
        };
        self.in_flight = true;
        Some(batch)
    }

    fn fresh_due(&self, now: Instant, hurry: bool) -> bool {
        self.since.is_some_and(|since| {
            hurry || self.open.entries.len() >= self.size || now >= later(since, self.wait)
        })
    }

    /// When [`next`](Self::next) has something that it has not now.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.in_flight {
            return None;
        }
        let fresh = self.since.map(|since| later(since, self.wait));
        let refused = self.refused.iter().map(|(at, _)| *at).min();
        sooner(fresh, refused)
    }

    /// The store answered for a batch of this many.
    pub(super) const fn answered(&mut self, events: usize) {
        self.in_flight = false;
        self.unsettled = self.unsettled.saturating_sub(events);
    }

    /// The store failed as a whole: the same again, when calls may be made.
    pub(super) fn again(&mut self, batch: Batch) {
        self.in_flight = false;
        self.again.push_front(batch);
    }

    /// The store refused this batch, and would again. Halves find the entry that it refuses; that
    /// one is set aside and tried at ever longer intervals, until its lease is lost. True where it
    /// was found just now: say so.
    pub(super) fn refused(&mut self, mut batch: Batch, retry: &StoreRetry, now: Instant) -> bool {
        self.in_flight = false;
        if batch.entries.len() > 1 {
            let entries = batch.entries.split_off(batch.entries.len() / 2);
            let half = Batch { entries, ..batch };
            self.again.push_front(half);
            self.again.push_front(batch);
            return false;
        }
        batch.refusals = batch.refusals.saturating_add(1);
        let found = batch.refusals == 1;
        let at = later(now, retry.capped(retry.base, batch.refusals));
        self.refused.push((at, batch));
        found
    }

    /// No more waiting: what was refused is tried once more now.
    pub(super) fn hurry(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        self.again
            .extend(refused.into_iter().map(|(_, batch)| batch));
    }

    /// The batch under way is not tried again; its events stay without an answer.
    pub(super) const fn give_up(&mut self) {
        self.in_flight = false;
    }
}
