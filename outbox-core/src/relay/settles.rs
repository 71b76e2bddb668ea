//! What is finished and waits to be settled, in groups.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::settings::{StoreRetry, later, sooner};
use crate::Settlement;

/// The most settle calls under way at once.
const CALLS: usize = 2;

/// One settle call's worth.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) entries: Vec<Settlement>,
    /// Some of it has a key: more of that key may be claimable once it is settled.
    pub(super) keyed: bool,
    failures: u32,
    not_before: Option<Instant>,
    said: bool,
}

#[derive(Debug)]
pub(super) struct Settles {
    wait: Duration,
    size: usize,
    open: Vec<Settlement>,
    keyed: bool,
    since: Option<Instant>,
    again: VecDeque<Batch>,
    calls: usize,
    unsettled: usize,
}

impl Settles {
    pub(super) const fn new(wait: Duration, size: usize) -> Self {
        Self {
            wait,
            size,
            open: Vec::new(),
            keyed: false,
            since: None,
            again: VecDeque::new(),
            calls: 0,
            unsettled: 0,
        }
    }

    /// Events without an answer yet.
    pub(super) const fn unsettled(&self) -> usize {
        self.unsettled
    }

    /// Adds one. What is added between two calls of [`next`](Self::next) stays together.
    pub(super) fn push(&mut self, settlement: Settlement, keyed: bool, now: Instant) {
        self.since.get_or_insert(now);
        self.open.push(settlement);
        self.keyed |= keyed;
        self.unsettled += 1;
    }

    /// The batch to send now, if any. `hurry`: nothing is gained by waiting.
    pub(super) fn next(&mut self, now: Instant, hurry: bool) -> Option<Batch> {
        if self.calls >= CALLS {
            return None;
        }
        let ready = |batch: &Batch| batch.not_before.is_none_or(|at| at <= now);
        let batch = match self.again.iter().position(ready) {
            Some(index) => self.again.remove(index)?,
            None if self.fresh_due(now, hurry) => {
                self.since = None;
                Batch {
                    entries: std::mem::take(&mut self.open),
                    keyed: std::mem::take(&mut self.keyed),
                    failures: 0,
                    not_before: None,
                    said: false,
                }
            }
            None => return None,
        };
        self.calls += 1;
        Some(batch)
    }

    fn fresh_due(&self, now: Instant, hurry: bool) -> bool {
        self.since.is_some_and(|since| {
            hurry || self.open.len() >= self.size || now >= later(since, self.wait)
        })
    }

    /// When [`next`](Self::next) has something that it has not now.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.calls >= CALLS {
            return None;
        }
        let fresh = self.since.map(|since| later(since, self.wait));
        let again = self.again.iter().map(|batch| batch.not_before).min();
        sooner(fresh, again.flatten())
    }

    /// The store answered for a batch of this many.
    pub(super) fn answered(&mut self, events: usize) {
        self.calls = self.calls.saturating_sub(1);
        self.unsettled = self.unsettled.saturating_sub(events);
    }

    /// The store failed as a whole: the same again, when calls may be made.
    pub(super) fn again(&mut self, batch: Batch) {
        self.calls = self.calls.saturating_sub(1);
        self.again.push_back(batch);
    }

    /// The store refused this batch, and would again. Halves find the entry that it refuses; each
    /// is tried at ever longer intervals, at last until the lease is lost. True where the refused
    /// entry is found: say so, once.
    pub(super) fn refused(&mut self, mut batch: Batch, retry: &StoreRetry, now: Instant) -> bool {
        self.calls = self.calls.saturating_sub(1);
        batch.failures = batch.failures.saturating_add(1);
        batch.not_before = Some(later(now, retry.capped(retry.base, batch.failures)));
        if batch.entries.len() > 1 {
            let entries = batch.entries.split_off(batch.entries.len() / 2);
            let half = Batch { entries, ..batch };
            self.again.extend([batch, half]);
            return false;
        }
        let found = !std::mem::replace(&mut batch.said, true);
        self.again.push_back(batch);
        found
    }

    /// No more waiting: what failed is tried once more now.
    pub(super) fn hurry(&mut self) {
        for batch in &mut self.again {
            batch.not_before = None;
        }
    }

    /// This batch is not tried again; its events stay without an answer.
    pub(super) fn give_up(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }

    /// Whether something is on its way, or only waits for the store to come back.
    pub(super) fn pending(&self) -> bool {
        let waits = |batch: &Batch| batch.not_before.is_none();
        self.calls > 0 || !self.open.is_empty() || self.again.iter().any(waits)
    }
}
