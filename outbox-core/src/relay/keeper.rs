//! Leases of live attempts, extended from one place.

use std::time::{Duration, Instant};

use super::runs::Run;
use super::settings::{later, sooner};
use super::slots::{Slots, State};
use crate::Lease;

/// When to extend. One call is under way at a time.
#[derive(Debug)]
pub(super) struct Keeper {
    lease: Duration,
    due: Option<Instant>,
    urgent: bool,
    in_flight: bool,
}

impl Keeper {
    pub(super) const fn new(lease: Duration) -> Self {
        Self {
            lease,
            due: None,
            urgent: false,
            in_flight: false,
        }
    }

    /// A lease from then is held.
    pub(super) fn holds(&mut self, since: Instant) {
        self.due = sooner(self.due, Some(later(since, self.lease / 3)));
    }

    /// An attempt waits for an extension.
    pub(super) const fn hurry(&mut self) {
        self.urgent = true;
    }

    pub(super) const fn sent(&mut self) {
        self.in_flight = true;
    }

    pub(super) const fn answered(&mut self) {
        self.in_flight = false;
    }

    /// When to look at the leases, where no call is under way.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if self.in_flight {
            None
        } else if self.urgent {
            Some(now)
        } else {
            self.due
        }
    }

    /// Whether a lease from then has used up its third.
    pub(super) fn old(&self, since: Instant, now: Instant) -> bool {
        now >= later(since, self.lease / 3)
    }

    /// Whether an attempt that begins now would end within the lease.
    pub(super) fn covers(&self, since: Instant, now: Instant, timeout: Duration) -> bool {
        now.saturating_duration_since(since).saturating_add(timeout) < self.lease
    }

    /// The leases to extend now. A run is extended whole.
    pub(super) fn collect<'r>(
        &mut self,
        slots: &Slots<'_>,
        waiting: impl Iterator<Item = &'r Run>,
        now: Instant,
    ) -> Vec<Lease> {
        (self.urgent, self.due) = (false, None);
        let mut leases = Vec::new();
        for work in slots.works() {
            let stale = matches!(work.state, State::Stale);
            for held in work.run.held().filter(|held| !held.lost) {
                if stale || self.old(held.since, now) {
                    leases.push(held.claimed.lease);
                } else {
                    self.holds(held.since);
                }
            }
        }
        waiting.for_each(|run| self.holds(run.head.since));
        leases
    }
}
