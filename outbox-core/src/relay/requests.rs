//! Which store calls to make now, and when the next is due.

use std::num::NonZeroU32;
use std::time::Instant;

use super::ahead;
use super::calls::{Call, Caller};
use super::driver::Driver;
use super::pacing::Asked;
use super::settings::{later, sooner};
use super::stage::{Mode, Stage};
use crate::{ClaimRequest, DestinationFilter};

impl<'a> Driver<'a> {
    /// Makes every store call that is due.
    pub(super) fn send_due(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Aborted { .. }) || !self.may_call(now) {
            return;
        }
        let caller = self.caller();
        if let Some(batch) = self.settles.next(now, self.hurry()) {
            self.send(caller.settle(batch, now));
        }
        while let Some(orphan) = self.orphans.pop() {
            self.send(caller.release_claim(orphan, now));
        }
        while let Some(wish) = self.holds.pop() {
            if wish.until > now {
                self.send(caller.hold(wish, now));
            }
        }
        if self.keeper.due(now).is_some_and(|at| at <= now) {
            self.extend(now);
        }
        if self.mode == Mode::UntilIdle && self.is_quiet() {
            self.pacing.nudge();
        }
        if self.claim_due(now).is_some_and(|at| at <= now) {
            self.claim(now);
        }
    }

    /// When [`send_due`](Self::send_due) has something that it has not now.
    pub(super) fn calls_due(&self, now: Instant) -> Option<Instant> {
        if matches!(self.stage, Stage::Aborted { .. }) {
            return None;
        }
        let due = sooner(self.settles.due(), self.keeper.due(now));
        let due = sooner(due, self.claim_due(now));
        let waiting = !self.orphans.is_empty() || !self.holds.is_empty() || self.settles.pending();
        let due = if waiting && !self.may_call(now) {
            sooner(due, Some(now))
        } else {
            due
        };
        due.map(|at| self.health.until().map_or(at, |until| at.max(until)))
    }

    /// Nothing is being delivered or settled, but for what the store refuses.
    pub(super) fn is_quiet(&self) -> bool {
        self.slots.busy() == 0 && self.destinations.waiting() == 0 && !self.settles.pending()
    }

    /// While closing, each call has its one try whatever the store's health.
    fn may_call(&self, now: Instant) -> bool {
        self.health.open(now) || !self.stage.tries_again()
    }

    fn hurry(&self) -> bool {
        self.slots.busy() == 0 || !self.stage.tries_again()
    }

    fn caller(&self) -> Caller<'a> {
        Caller {
            store: &*self.parts.store,
            timer: &*self.parts.timer,
            timeout: self.settings().store_timeout,
        }
    }

    fn send(&mut self, call: Call<'a>) {
        self.calls.push(call);
        self.fresh_call = true;
    }

    fn extend(&mut self, now: Instant) {
        let unwanted = {
            let keeper = &self.keeper;
            self.destinations
                .drain_waiting(|_, run| keeper.old(run.head.since, now))
        };
        if !unwanted.is_empty() {
            self.ahead.stalled(self.settings().lease / 3);
        }
        // A destination this slow is better served by whoever has a place for it.
        for run in unwanted {
            self.release(run, now);
        }
        let waiting = self.destinations.waiting_runs();
        let leases = self.keeper.collect(&self.slots, waiting, now);
        if !leases.is_empty() {
            self.keeper.sent();
            let lease = self.settings().lease;
            self.send(self.caller().extend(leases, lease, now));
        }
    }

    /// When to claim; `None` where something else has to happen first.
    fn claim_due(&self, now: Instant) -> Option<Instant> {
        let settings = self.settings();
        let room = self.room();
        let backlog = 2 * settings.concurrency.max(settings.settle_batch);
        let outage = self.health.troubled() && (self.settles.pending() || !self.orphans.is_empty());
        let blocked = !self.stage.claims()
            || room == 0
            || outage
            || self.settles.unsettled() >= backlog
            || self.bytes_left() == 0;
        if blocked {
            return None;
        }
        let due = self.pacing.due(now)?;
        let worth = self.ahead.worth_a_claim().min(settings.batch_size);
        if self.pacing.under_way() {
            // A second one is for attempts that are quicker than claims, and takes what is worth one.
            let quick = self.mode != Mode::Once && self.ahead.events() > 0;
            return (quick && room >= worth).then_some(due);
        }
        // A few events are not worth a claim of their own, unless a moment has passed. What waits beside
        // free slots can't have them.
        if self.free() >= settings.concurrency.div_ceil(4) || room >= worth {
            return Some(due);
        }
        let last = self.pacing.last();
        Some(last.map_or(due, |last| due.max(later(last, settings.settle_after))))
    }

    /// How many events a claim may bring: those that can begin, and those that soon will. Beside another
    /// claim, as many again.
    fn room(&self) -> usize {
        let settings = self.settings();
        let rounds = 1 + usize::from(self.pacing.under_way());
        let free = self.free();
        let waiting = self.destinations.waiting();
        let room = free + (rounds * self.ahead.events()).saturating_sub(waiting);
        // What may wait, and begin at once, where all are for one destination: the rest would go back.
        let fits = (rounds * ahead::ROUNDS * settings.concurrency).saturating_sub(waiting)
            + free.min(settings.per_destination);
        let room = room.min(fits.max(free.min(1)));
        room.saturating_sub(self.pacing.coming().events)
    }

    /// Bytes of payloads and headers that may be claimed yet. A claim that another may follow at once
    /// leaves it half of that.
    fn bytes_left(&self) -> u64 {
        let taken = self.held_bytes + self.pacing.coming().bytes;
        let left = self.settings().claim_bytes.saturating_sub(taken);
        if self.ahead.events() > 0 && !self.pacing.under_way() {
            left.div_ceil(2)
        } else {
            left
        }
    }

    fn free(&self) -> usize {
        let slots = self.settings().concurrency;
        slots.saturating_sub(self.slots.busy())
    }

    fn claim(&mut self, now: Instant) {
        let settings = self.settings();
        self.destinations.tidy(now);
        let Some(destinations) = self.filter(now) else {
            return self.pacing.skip(now);
        };
        // Stores count payloads.
        let bytes = self.bytes_left();
        let fit = bytes.checked_div(self.header_bytes);
        let fit = fit.map_or(usize::MAX, |fit| usize::try_from(fit).unwrap_or(usize::MAX));
        let asked = self.room().min(settings.batch_size).min(fit).max(1);
        let rows = u32::try_from(asked).unwrap_or(u32::MAX);
        let rows = NonZeroU32::new(rows).unwrap_or(NonZeroU32::MIN);
        let mut request = ClaimRequest::new(rows, settings.lease);
        let headers = self.header_bytes.saturating_mul(asked as u64);
        request.bytes = bytes.saturating_sub(headers).max(1);
        request.event_types.clone_from(&settings.event_types);
        request.destinations = destinations;
        self.quiet = self.is_quiet() && !self.pacing.under_way();
        let asked = Asked {
            events: asked,
            bytes,
        };
        self.pacing.sent(asked, now);
        self.send(self.caller().claim(request, asked, now));
    }

    /// What the relay serves, without the destinations that have no place; `None` where nothing is
    /// left.
    fn filter(&mut self, now: Instant) -> Option<DestinationFilter> {
        let mut excluded = self.destinations.excluded(now);
        match &self.settings().destinations {
            filter if excluded.is_empty() => Some(filter.clone()),
            DestinationFilter::All => Some(DestinationFilter::Except(excluded)),
            DestinationFilter::Except(list) => {
                excluded.extend(list.iter().cloned());
                Some(DestinationFilter::Except(excluded))
            }
            DestinationFilter::Only(list) => {
                let left = list.iter().filter(|name| !excluded.contains(name));
                let left: Vec<_> = left.cloned().collect();
                (!left.is_empty()).then_some(DestinationFilter::Only(left))
            }
        }
    }
}
