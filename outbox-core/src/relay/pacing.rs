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

/// What a claim may bring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) events: usize,
    pub(super) bytes: u64,
}

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
    /// Claims under way, and what they may bring.
    in_flight: usize,
    coming: Asked,
    /// The last claim brought all that it asked for: there is more.
    full: bool,
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
            in_flight: 0,
            coming: Asked {
                events: 0,
                bytes: 0,
            },
            full: false,
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
    ///
    /// Beside a claim that is under way another may go where there is more, so that the slots are fed
    /// while its answer takes its time.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        match self.in_flight {
            0 if self.wanted => Some(now),
            0 => self.at,
            1 if self.full => Some(now),
            _ => None,
        }
    }

    /// Whether a claim is under way.
    pub(super) const fn under_way(&self) -> bool {
        self.in_flight > 0
    }

    /// What the claims under way may bring.
    pub(super) const fn coming(&self) -> Asked {
        self.coming
    }

    /// The time of the last claim.
    pub(super) const fn last(&self) -> Option<Instant> {
        self.last
    }

    /// A claim is under way.
    pub(super) const fn sent(&mut self, asked: Asked, now: Instant) {
        self.wanted = false;
        self.at = None;
        self.last = Some(now);
        self.in_flight += 1;
        self.coming.events += asked.events;
        self.coming.bytes += asked.bytes;
    }

    /// There is nothing to ask for now; what changes that nudges.
    pub(super) fn skip(&mut self, now: Instant) {
        self.wanted = false;
        self.full = false;
        self.at = Some(later(now, self.poll));
    }

    pub(super) const fn failed(&mut self, asked: Asked) {
        self.ended(asked);
        self.full = false;
        self.wanted = true;
    }

    pub(super) fn answered(
        &mut self,
        asked: Asked,
        got: usize,
        next_due: Option<Duration>,
        now: Instant,
    ) {
        self.ended(asked);
        self.empties = if got == 0 {
            self.empties.saturating_add(1)
        } else {
            0
        };
        self.finished = next_due.is_none_or(|due| !due.is_zero());
        // Stores may round a limit down: half of it counts as full.
        self.full = got > 0 && got.saturating_mul(2) >= asked.events;
        if self.full {
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

    const fn ended(&mut self, asked: Asked) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.coming.events = self.coming.events.saturating_sub(asked.events);
        self.coming.bytes = self.coming.bytes.saturating_sub(asked.bytes);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "instants for a pure function")]
mod tests {
    use super::*;

    const fn asked(events: usize) -> Asked {
        let bytes = 1_000;
        Asked { events, bytes }
    }

    #[test]
    fn a_second_claim_goes_beside_one_only_where_there_is_more() {
        let now = Instant::now();
        let mut pacing = Pacing::new(Duration::from_secs(1), Spread::random());
        pacing.sent(asked(50), now);
        assert_eq!((pacing.due(now), pacing.coming()), (None, asked(50)));
        pacing.answered(asked(50), 40, None, now);
        pacing.sent(asked(50), now);
        assert_eq!(pacing.due(now), Some(now));
        pacing.skip(now);
        assert_eq!(pacing.due(now), None);
        pacing.sent(asked(30), now);
        assert_eq!((pacing.due(now), pacing.coming().events), (None, 80));
        pacing.answered(asked(30), 2, None, now);
        assert_eq!((pacing.due(now), pacing.coming()), (None, asked(50)));
        pacing.failed(asked(50));
        let nothing = Asked::default();
        assert_eq!((pacing.under_way(), pacing.coming()), (false, nothing));
        assert_eq!(pacing.due(now), Some(now));
    }
}
