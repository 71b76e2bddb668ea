//! The low-water mark: where a claim of fresh rows starts its scan.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What a scan costs at least for each row that it brings.
const PER_ROW: Duration = Duration::from_micros(20);
/// A sweep that costs no more beside its rows is as good as a scan from the mark.
const CHEAP: Duration = Duration::from_millis(2);
/// A sweep that costs more is rationed also where the mark brings nothing.
const EXPENSIVE: Duration = Duration::from_millis(20);
/// While claims are full, and where sweeps are expensive, this much time and `RATION` times the last
/// one's cost lie between two.
const RHYTHM: Duration = Duration::from_millis(50);
const RATION: u32 = 20;
/// So many scans are remembered that left rows; of those before, what all of them had looked at.
const SCANS: usize = 16;

/// Where the next claim of fresh rows starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Start {
    /// Rows from this `seq` on.
    pub seq: i64,
    /// Whether it looks below the mark.
    pub sweep: bool,
    /// The mark.
    mark: Option<i64>,
}

/// What one claim of fresh rows brought.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by every adapter")]
pub struct Scan {
    /// The greatest `seq` up to which nothing that can be claimed was left.
    pub last: Option<i64>,
    /// How many rows it took.
    pub rows: usize,
    /// Whether it stopped at a limit, so that more may follow.
    pub full: bool,
    /// Whether it may have locked rows behind `last` that it left: claims meanwhile passed over them.
    pub left: bool,
    /// How long it took.
    pub took: Duration,
}

/// One store's low-water mark for fresh rows.
///
/// A scan from the first row walks over the index entries of all rows that were deleted and not yet
/// vacuumed, which an old snapshot can keep for hours. So a claim starts at the last `seq` of the
/// previous one. What lies below (late commits, expired leases) is found by *sweeps* from the first
/// row: every claim is one while the backlog is short and a sweep is cheap; otherwise one is made
/// where the mark brings nothing, and on a rhythm. An expensive one takes a twentieth of the time at
/// most.
///
/// ```
/// use std::time::{Duration, Instant};
/// use outbox_core::sql::{Mark, Scan};
///
/// # #[expect(clippy::disallowed_methods)]
/// let now = Instant::now();
/// let mut mark = Mark::default();
/// let start = mark.start(now);
/// assert!(start.sweep);
/// mark.claimed(start, Scan { last: Some(500), rows: 100, full: true, left: false, took: Duration::from_millis(1) }, now);
/// assert_eq!(mark.start(now).seq, 500);
/// ```
#[derive(Debug, Default)]
pub struct Mark {
    seq: Option<i64>,
    /// Where the next sweep goes on, if the last one stopped before the mark.
    sweep_from: Option<i64>,
    /// The last claim brought less than it asked for.
    drained: bool,
    next_sweep: Option<Instant>,
    /// What a row of the last full claim at the mark took.
    per_row: Duration,
    /// The cost of the last two sweeps: what only one had says nothing.
    costs: [Duration; 2],
    /// The last number that was given out, as it was told most recently.
    given_out: Option<i64>,
    /// When the last scans ended that left rows they had locked, and up to where they had not.
    left: VecDeque<(Instant, Option<i64>)>,
}

impl Mark {
    /// Where to start now.
    #[must_use]
    pub fn start(&self, now: Instant) -> Start {
        let sweeps = (self.drained && self.cost() <= CHEAP) || self.is_time(now);
        match self.seq {
            Some(seq) if !sweeps => Start {
                seq,
                sweep: false,
                mark: self.seq,
            },
            _ => self.sweep(),
        }
    }

    /// Where to start a sweep.
    #[must_use]
    pub fn sweep(&self) -> Start {
        Start {
            seq: self.sweep_from.unwrap_or(i64::MIN),
            sweep: true,
            mark: self.seq,
        }
    }

    /// Whether a claim that found nothing at the mark may look below it.
    #[must_use]
    pub fn may_sweep(&self, now: Instant) -> bool {
        !self.is_rationed() || self.is_time(now)
    }

    /// Whether sweeps are rationed also where the mark brings nothing.
    #[must_use]
    pub fn is_rationed(&self) -> bool {
        self.cost() > EXPENSIVE
    }

    /// Whether sweeps cost so much that an empty one should set the mark.
    #[must_use]
    pub fn matters(&self) -> bool {
        self.cost() > CHEAP
    }

    /// Whether the last claim stopped at its limit.
    #[must_use]
    pub const fn was_full(&self) -> bool {
        !self.drained
    }

    fn is_time(&self, now: Instant) -> bool {
        self.next_sweep.is_none_or(|at| at <= now)
    }

    fn cost(&self) -> Duration {
        self.costs[0].min(self.costs[1])
    }

    /// Notes what a claim from `start` brought.
    pub fn claimed(&mut self, start: Start, scan: Scan, now: Instant) {
        self.drained = !scan.full;
        let rows = u32::try_from(scan.rows).unwrap_or(u32::MAX);
        if !start.sweep && scan.full && rows > 0 {
            self.per_row = scan.took / rows;
        }
        if start.sweep {
            let brought = self.per_row.max(PER_ROW).saturating_mul(rows);
            let cost = scan.took.saturating_sub(brought);
            self.costs = [self.costs[1], cost];
            self.next_sweep = now.checked_add(RHYTHM.max(cost.saturating_mul(RATION)));
        }
        let bound = self.bound(now.checked_sub(scan.took));
        if scan.left {
            let at = scan.last.max(start.mark);
            self.leaves(at, now);
            self.seq = self.seq.min(at);
        }
        let Some(last) = scan.last else {
            if start.sweep {
                self.sweep_from = None;
            }
            return;
        };
        let last = match bound {
            Some(bound) if bound < Some(last) => {
                let Some(bound) = bound.filter(|bound| self.seq <= Some(*bound)) else {
                    return;
                };
                bound
            }
            _ => last,
        };
        let below = self.seq.is_some_and(|mark| last < mark);
        if start.sweep {
            // A sweep through rows that are not for claiming goes on there and leaves the mark.
            self.sweep_from = (scan.full && scan.rows == 0 && below).then_some(last);
        }
        if !below || (scan.full && scan.rows > 0) {
            self.seq = Some(last);
        }
    }

    /// Up to where a scan that began then has certainly looked, if another one that ended since had locked
    /// rows and left them.
    fn bound(&self, began: Option<Instant>) -> Option<Option<i64>> {
        let beside = self.left.iter();
        let beside = beside.filter(|(ended, _)| began.is_none_or(|began| began < *ended));
        beside.map(|(_, at)| *at).min()
    }

    fn leaves(&mut self, at: Option<i64>, now: Instant) {
        let oldest = (self.left.len() == SCANS).then(|| self.left.pop_front());
        if let (Some(oldest), Some(next)) = (oldest.flatten(), self.left.front_mut()) {
            next.1 = next.1.min(oldest.1);
        }
        self.left.push_back((now, at));
    }

    /// The last number given out, as far as [`gave_out`](Self::gave_out) was told.
    #[must_use]
    pub const fn given_out(&self) -> Option<i64> {
        self.given_out
    }

    /// Notes that `seq` is the last number that was given out.
    pub const fn gave_out(&mut self, seq: i64) {
        self.given_out = Some(seq);
    }

    /// Notes that a sweep found nothing that began then, when `seq` was the last number given out, or a
    /// later one. (What is told after the sweep is no such number: meanwhile a lower one may have
    /// committed.)
    pub fn nothing_up_to(&mut self, seq: i64, began: Instant) {
        let bound = self.bound(Some(began)).unwrap_or(Some(seq));
        self.seq = self.seq.max(bound.min(Some(seq)));
    }

    /// Forgets everything, after any error of the store, but for what scans left that others, under way
    /// yet, have passed over.
    pub fn reset(&mut self) {
        *self = Self {
            left: std::mem::take(&mut self.left),
            ..Self::default()
        };
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "instants for a pure function")]
mod tests {
    use super::*;

    fn scan(last: i64, full: bool, millis: u64) -> Scan {
        Scan {
            last: (last > 0).then_some(last),
            rows: 1,
            full,
            left: false,
            took: Duration::from_millis(millis),
        }
    }

    #[test]
    fn a_short_backlog_is_swept_each_time_and_a_long_one_is_not() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        let first = mark.start(now);
        mark.claimed(first, scan(7, false, 1), now);
        assert!(mark.start(now).sweep);
        mark.claimed(mark.start(now), scan(9, true, 1), now);
        assert_eq!(mark.start(now).seq, 9);
        assert!(mark.start(now + RHYTHM).sweep);
    }

    #[test]
    fn an_expensive_sweep_is_rationed_by_its_cost() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        mark.claimed(mark.start(now), scan(7, false, 102), now);
        assert!(mark.may_sweep(now), "one slow answer says nothing");
        mark.claimed(mark.sweep(), scan(7, false, 102), now);
        assert_eq!(mark.start(now).seq, 7);
        assert!(!mark.may_sweep(now + Duration::from_secs(2)));
        assert!(mark.may_sweep(now + Duration::from_secs(3)));
        mark.reset();
        assert!(mark.start(now).sweep);
    }

    #[test]
    fn what_rows_cost_at_the_mark_is_no_cost_of_a_sweep() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        mark.claimed(mark.start(now), scan(7, true, 30), now);
        mark.claimed(mark.start(now), scan(8, true, 30), now);
        mark.claimed(mark.sweep(), scan(9, true, 31), now);
        assert!(mark.start(now + RHYTHM).sweep);
    }

    #[test]
    fn a_full_sweep_lowers_the_mark_and_a_short_one_does_not() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        mark.claimed(mark.start(now), scan(100, true, 1), now);
        let sweep = mark.sweep();
        mark.claimed(sweep, scan(40, false, 1), now);
        assert_eq!(mark.seq, Some(100));
        mark.claimed(sweep, scan(50, true, 1), now);
        assert_eq!(mark.seq, Some(50));
    }

    const MS: Duration = Duration::from_millis(1);

    /// One that left rows behind the last.
    fn cut(last: i64, millis: u64) -> Scan {
        Scan {
            left: true,
            ..scan(last, true, millis)
        }
    }

    #[test]
    fn a_claim_beside_one_that_leaves_rows_moves_the_mark_no_further_than_that() {
        let begun = Instant::now();
        let start = Mark::default().start(begun);
        // It ends first, or last.
        let mut mark = Mark::default();
        mark.claimed(start, cut(160, 4), begun + 4 * MS);
        mark.claimed(start, scan(290, true, 3), begun + 5 * MS);
        mark.nothing_up_to(300, begun + 3 * MS);
        assert_eq!(mark.seq, Some(160));
        let mut mark = Mark::default();
        mark.claimed(start, scan(290, true, 2), begun + 3 * MS);
        mark.claimed(start, cut(160, 4), begun + 4 * MS);
        assert_eq!(mark.seq, Some(160));
        // What begins later looks at them.
        mark.claimed(mark.start(begun), scan(200, true, 1), begun + 6 * MS);
        assert_eq!(mark.seq, Some(200));
        // And what began before it, and ends now, does not take it back.
        mark.claimed(start, scan(310, true, 4), begun + 7 * MS);
        assert_eq!(mark.seq, Some(200));
        mark.nothing_up_to(300, begun + 6 * MS);
        assert_eq!(mark.seq, Some(300));
    }

    #[test]
    fn one_that_takes_nothing_of_what_it_locked_leaves_the_mark_where_it_began() {
        let begun = Instant::now();
        let nothing = Scan {
            rows: 0,
            full: false,
            ..cut(0, 4)
        };
        for (known, after) in [(Some(100), Some(100)), (None, None)] {
            for others_first in [false, true] {
                let mut mark = Mark {
                    seq: known,
                    ..Mark::default()
                };
                let start = mark.sweep();
                if others_first {
                    mark.claimed(start, scan(120, true, 2), begun + 3 * MS);
                }
                mark.claimed(start, nothing, begun + 4 * MS);
                mark.claimed(start, scan(140, true, 3), begun + 5 * MS);
                mark.nothing_up_to(300, begun + 3 * MS);
                assert_eq!(mark.seq, after);
            }
        }
    }

    #[test]
    fn claims_that_overlap_without_end_move_the_mark_even_so() {
        let begun = Instant::now();
        let mut mark = Mark::default();
        // Each begins before the one before it ends, and leaves rows.
        for nth in 1_u32..=20 {
            let start = mark.start(begun);
            mark.claimed(start, cut(100 * i64::from(nth), 10), begun + nth * 6 * MS);
        }
        assert!(mark.seq >= Some(1_800), "{:?}", mark.seq);
        mark.reset();
        assert_eq!(mark.bound(Some(begun)), Some(Some(100)), "still under way");
    }

    #[test]
    fn a_sweep_through_held_rows_goes_on_where_it_stopped_and_leaves_the_mark() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        mark.claimed(mark.start(now), scan(100, true, 1), now);
        let mut held = scan(40, true, 1);
        held.rows = 0;
        mark.claimed(mark.sweep(), held, now);
        assert_eq!((mark.seq, mark.sweep().seq), (Some(100), 40));
        held.last = Some(120);
        mark.claimed(mark.sweep(), held, now);
        assert_eq!((mark.seq, mark.sweep().seq), (Some(120), i64::MIN));
    }
}
