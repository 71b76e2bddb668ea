//! When to claim next.

use std::time::{Duration, Instant};

use super::settings::{later, sooner};
use crate::spread::Spread;

/// The first wait after a claim that brought little or nothing. It grows fivefold up to the poll
/// interval: a short or empty claim does not mean that nothing is left.
const FIRST: Duration = Duration::from_millis(5);
/// A next-due time closer than this counts as this.
const NEAREST: Duration = Duration::from_millis(1);

/// So many claims in a row say "none, but there is more to look at" before they count as "none". A store
/// may say so as long as there are due events that it hands out to nobody.
const PATIENCE: u32 = 16;

#[derive(Debug)]
pub(super) struct Pacing {
    poll: Duration,
    spread: Spread,
    wanted: bool,
    at: Option<Instant>,
    empties: u32,
    /// The last of these said that there is nothing more to look at.
    finished: bool,
    last: Option<Instant>,
    in_flight: bool,
}

impl Pacing {
    pub(super) const fn new(poll: Duration, spread: Spread) -> Self {
        Self {
            poll,
            spread,
            wanted: true,
            at: None,
            empties: 0,
            finished: false,
            last: None,
            in_flight: false,
        }
    }

    /// Whether nothing is due, by all that claims said.
    pub(super) const fn is_idle(&self) -> bool {
        self.empties >= if self.finished { 2 } else { PATIENCE }
    }

    /// Something may have become claimable.
    pub(super) const fn nudge(&mut self) {
        self.wanted = true;
    }

    /// Something becomes claimable then.
    pub(super) fn no_later_than(&mut self, at: Instant) {
        self.at = sooner(self.at, Some(at));
    }

    /// When to claim, if not at once.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if self.in_flight {
            return None;
        }
        if self.wanted { Some(now) } else { self.at }
    }

    /// The time of the last claim.
    pub(super) const fn last(&self) -> Option<Instant> {
        self.last
    }

    pub(super) const fn sent(&mut self, now: Instant) {
        self.wanted = false;
        self.at = None;
        self.last = Some(now);
        self.in_flight = true;
    }

    /// There is nothing to ask for now; what changes that nudges.
    pub(super) fn skip(&mut self, now: Instant) {
        self.wanted = false;
        self.at = Some(later(now, self.poll));
    }

    pub(super) fn failed(&mut self) {
        self.in_flight = false;
        self.wanted = true;
    }

    pub(super) fn answered(
        &mut self,
        asked: usize,
        got: usize,
        next_due: Option<Duration>,
        now: Instant,
    ) {
        self.in_flight = false;
        self.empties = if got == 0 {
            self.empties.saturating_add(1)
        } else {
            0
        };
        self.finished = next_due.is_none_or(|due| !due.is_zero());
        // Stores may round a limit down: half of it counts as full.
        if got > 0 && got.saturating_mul(2) >= asked {
            self.wanted = true;
            return;
        }
        let step = FIRST.saturating_mul(5u32.saturating_pow(self.empties));
        let poll = self.poll - self.spread.draw(self.poll / 5);
        self.no_later_than(later(now, step.min(poll)));
        if let Some(due) = next_due {
            // What is due now and was not handed out is not waited for as if it came due.
            let due = if self.empties > 3 && due < NEAREST {
                step
            } else {
                due.max(NEAREST)
            };
            self.no_later_than(later(now, due));
        }
    }
}
