//! What a store remembers from one claim to the next.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::front::Fronts;
use super::walk::{Stripes, Walk};
use super::window::Window;
use super::{Mark, Shape, Shapes, Shares, Start};
use crate::LeaseToken;

/// A shape that had nothing to give is left alone for so many times what finding out took; parked
/// rows twice as long each time, since they come free with what claims leave out.
const RATION: u32 = 20;
const LONGEST_REST: Duration = Duration::from_millis(250);
/// The same of fresh rows, which producers are about to add.
const LONGEST_REST_OF_FRESH: Duration = Duration::from_millis(5);
/// How old the knowledge of shapes may become; and how long fresh rows are left alone that gave nothing
/// to a claim which others filled.
const FRESHNESS: Duration = Duration::from_millis(20);
/// Rows of held destinations are walked past where a window meets no more than one in so many, or a
/// sweep, which meets those that were walked past.
const SPARSE: usize = 8;
const SPARSE_BELOW: usize = 2;
/// Of how many claims is known where they began.
const WALKS: usize = 64;

/// What a store remembers from one claim to the next: hints only, right or wrong without harm.
#[derive(Debug)]
#[non_exhaustive]
pub struct ScanState {
    /// The low-water mark of fresh rows.
    pub mark: Mark,
    /// Whether a destination is held.
    pub held: bool,
    /// The destination after which parked rows are looked for.
    pub parked_after: String,
    /// The last window of fresh rows met many to park, or none was looked through since a destination was
    /// held.
    parking: bool,
    /// The last claim's other rows left no room for the next keyed one.
    pub(super) keyed_first: bool,
    /// The last look at keyed rows brought nothing.
    pub(super) keyed_careful: bool,
    /// What is known of the fronts of keyed rows.
    pub(super) fronts: Fronts,
    /// Walks through keys, one for each range of stripes.
    walks: Vec<(Stripes, Walk)>,
    windows: [Window; 2],
    shapes: Shapes,
    known: Option<Instant>,
    resting: [Option<Instant>; 4],
    /// How often in a row parked rows had nothing to give.
    parked_empty: u32,
    /// The destinations that the last claim left out.
    left_out: Vec<String>,
    turn: usize,
    /// The last claim brought nothing.
    idle: bool,
    /// The last claim brought all that it asked for.
    full: bool,
    /// Where the last claims began to walk through keys, by their tokens.
    begun: VecDeque<(LeaseToken, (String, i64))>,
}

impl Default for ScanState {
    fn default() -> Self {
        Self {
            mark: Mark::default(),
            held: true,
            parking: true,
            keyed_first: false,
            keyed_careful: false,
            fronts: Fronts::default(),
            walks: Vec::new(),
            windows: [Window::default(); 2],
            parked_after: String::new(),
            shapes: Shapes::ALL,
            known: None,
            resting: [None; 4],
            parked_empty: 0,
            left_out: Vec::new(),
            turn: 0,
            idle: false,
            full: false,
            begun: VecDeque::new(),
        }
    }
}

impl ScanState {
    /// The shares of a claim of `rows` rows that begins now.
    pub fn shares(&mut self, rows: usize, now: Instant) -> Shares {
        let mut shapes = self.shapes;
        for shape in Shape::ALL {
            if self.resting[shape as usize].is_some_and(|until| now < until) {
                shapes = shapes.with(shape, false);
            }
        }
        self.turn = self.turn.wrapping_add(1);
        let shares = Shares::new(rows, shapes, self.turn);
        if std::mem::take(&mut self.keyed_first) {
            shares.keyed_first()
        } else {
            shares
        }
    }

    /// The shapes that may have rows and were not `asked` yet, for a claim that found nothing.
    #[must_use]
    pub fn others(&self, rows: usize, asked: Shapes) -> Shares {
        let mut shapes = self.shapes;
        for shape in Shape::ALL {
            if asked.contains(shape) {
                shapes = shapes.with(shape, false);
            }
        }
        Shares::new(rows, shapes, self.turn)
    }

    /// Where a claim of fresh rows starts now. An idle store is swept at once, where that is allowed:
    /// one statement then tells that there is nothing.
    #[must_use]
    pub fn start(&self, now: Instant) -> Start {
        if self.idle && self.mark.may_sweep(now) {
            return self.mark.sweep();
        }
        self.mark.start(now)
    }

    /// The windows of this shape's statements.
    pub(super) const fn window(&mut self, shape: Shape) -> &mut Window {
        &mut self.windows[matches!(shape, Shape::Due) as usize]
    }

    /// Whether fresh rows are looked for by a statement that always brings [`Notes`](super::Notes):
    /// after a claim that brought nothing, so that the next one that brings nothing is a single
    /// statement; and while a destination is held or left out, since it parks rows: where the last one
    /// parked many, in sweeps, which would meet those rows each time, and where sweeps are rationed: what
    /// was walked past would be found late.
    #[must_use]
    pub fn wants_window(&self, sweep: bool) -> bool {
        let closed = self.held || !self.left_out.is_empty();
        self.idle || closed && (sweep || self.parking || self.mark.is_rationed())
    }

    /// Notes how many of a window's rows were parked, which is above the mark or a sweep.
    pub(super) const fn parked(&mut self, sweep: bool, parked: usize, rows: usize) {
        let sparse = if sweep { SPARSE_BELOW } else { SPARSE };
        let many = parked.saturating_mul(sparse) > rows;
        self.parking = many || self.parking && sweep;
    }

    /// Notes how many rows a claim brought in the end, of so many at most.
    pub const fn ended(&mut self, rows: usize, limit: usize) {
        self.idle = rows == 0;
        self.full = rows >= limit;
    }

    /// Notes which destinations the next claim leaves out. Where that is one less, its parked rows
    /// are free.
    pub fn leaves_out(&mut self, destinations: &[String]) {
        if self.left_out == destinations {
            return;
        }
        let back = |name: &String| !destinations.contains(name);
        if self.left_out.iter().any(back) {
            self.resting[Shape::Parked as usize] = None;
            self.parked_empty = 0;
        }
        self.left_out = destinations.to_vec();
    }

    /// Notes whether a shape gave anything, at what cost.
    pub fn gave(&mut self, shape: Shape, rows: usize, now: Instant, took: Duration) {
        let mut rest = took.saturating_mul(RATION);
        if shape == Shape::Parked {
            rest = rest.saturating_mul(1 << self.parked_empty.min(16));
            self.parked_empty = if rows == 0 {
                self.parked_empty.saturating_add(1)
            } else {
                0
            };
        }
        let rest = match shape {
            Shape::Fresh if self.full => FRESHNESS,
            Shape::Fresh => rest.min(LONGEST_REST_OF_FRESH),
            _ => rest.min(LONGEST_REST),
        };
        let until = now.checked_add(rest);
        self.resting[shape as usize] = until.filter(|_| rows == 0);
    }

    /// Notes which shapes have rows.
    pub fn learned(&mut self, shapes: Shapes, held: bool, now: Instant) {
        self.shapes = shapes;
        self.held = held;
        self.known = Some(now);
    }

    /// Whether the knowledge of shapes is old.
    #[must_use]
    pub fn is_stale(&self, now: Instant) -> bool {
        self.known
            .is_none_or(|at| now.saturating_duration_since(at) > FRESHNESS)
    }

    /// Leases ended: keys may be ready, and rows that were `given_back` are due some time.
    pub fn settled(&mut self, given_back: bool) {
        self.resting[Shape::Keyed as usize] = None;
        if given_back {
            self.resting[Shape::Due as usize] = None;
            self.shapes = self.shapes.with(Shape::Due, true).with(Shape::Keyed, true);
        }
    }

    /// A destination was held or freed.
    pub fn destinations_changed(&mut self) {
        self.parking = true;
        self.held = true;
        self.shapes = Shapes::ALL;
        self.resting = [None; 4];
    }

    /// The walk through these stripes.
    pub(super) fn walk(&mut self, stripes: Stripes) -> &mut Walk {
        let known = self.walks.iter().position(|walk| walk.0 == stripes);
        let at = known.unwrap_or_else(|| {
            self.walks.push((stripes, Walk::through(stripes)));
            self.walks.len() - 1
        });
        &mut self.walks[at].1
    }

    /// Notes after which destination and hash of a key a claim looks for keyed rows first.
    pub(super) fn walks(&mut self, token: LeaseToken, after: &(String, i64)) {
        if self.begun.len() == WALKS {
            self.begun.pop_front();
        }
        self.begun.push_back((token, after.clone()));
    }

    /// The destination and hash of the key after which the claim with this token looked for keyed rows:
    /// those before the first key where that is not known.
    #[must_use]
    pub fn walk_of(&self, token: LeaseToken) -> (String, i64) {
        let walk = self.begun.iter().rev().find(|walk| walk.0 == token);
        walk.map_or((String::new(), i64::MIN), |walk| walk.1.clone())
    }

    /// Forgets everything: after any error. Where claims began is known on, since their answers may be
    /// what was lost.
    pub fn reset(&mut self) {
        self.mark.reset();
        *self = Self {
            turn: self.turn,
            begun: std::mem::take(&mut self.begun),
            mark: std::mem::take(&mut self.mark),
            ..Self::default()
        };
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "instants for a pure function")]
mod tests {
    use super::*;

    /// After how many ms a shape that gave nothing is asked again.
    fn rest(state: &mut ScanState, shape: Shape) -> Option<u64> {
        let now = Instant::now();
        state.learned(Shapes::default().with(shape, true), false, now);
        state.gave(shape, 0, now, Duration::from_millis(1));
        (0..1_000).find(|ms| {
            let then = now + Duration::from_millis(*ms);
            state.shares(10, then).next().is_some()
        })
    }

    #[test]
    fn fresh_rows_rest_longer_beside_claims_that_others_fill() {
        let mut state = ScanState::default();
        assert_eq!(rest(&mut state, Shape::Fresh), Some(5));
        state.ended(10, 10);
        assert_eq!(rest(&mut state, Shape::Fresh), Some(20));
        assert_eq!(rest(&mut state, Shape::Due), Some(20));
        state.ended(9, 10);
        assert_eq!(rest(&mut state, Shape::Fresh), Some(5));
    }
}
