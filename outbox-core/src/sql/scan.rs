//! What a store remembers from one claim to the next.

use std::time::{Duration, Instant};

use super::{Mark, Shape, Shapes, Shares};

/// A shape that had nothing to give is left alone for so many times what finding out took.
const RATION: u32 = 20;
const LONGEST_REST: Duration = Duration::from_millis(250);
/// How old the knowledge of shapes may become.
const FRESHNESS: Duration = Duration::from_millis(20);

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
    /// The destination and the hash of the key after which keyed rows are looked for.
    pub keyed_after: (String, i64),
    shapes: Shapes,
    known: Option<Instant>,
    resting: [Option<Instant>; 4],
    turn: usize,
}

impl Default for ScanState {
    fn default() -> Self {
        Self {
            mark: Mark::default(),
            held: true,
            parked_after: String::new(),
            keyed_after: (String::new(), i64::MIN),
            shapes: Shapes::ALL,
            known: None,
            resting: [None; 4],
            turn: 0,
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
        Shares::new(rows, shapes, self.turn)
    }

    /// The shapes that [`shares`](Self::shares) left out, for a claim that found nothing.
    #[must_use]
    pub fn rested(&self, rows: usize, now: Instant) -> Shares {
        let mut shapes = Shapes::default();
        for shape in Shape::ALL {
            let rests = self.resting[shape as usize].is_some_and(|until| now < until);
            shapes = shapes.with(shape, rests && self.shapes.contains(shape));
        }
        Shares::new(rows, shapes, self.turn)
    }

    /// Notes whether a shape gave anything, at what cost.
    pub fn gave(&mut self, shape: Shape, rows: usize, now: Instant, took: Duration) {
        let rest = took.saturating_mul(RATION).min(LONGEST_REST);
        self.resting[shape as usize] = (rows == 0 && shape != Shape::Fresh)
            .then(|| now.checked_add(rest))
            .flatten();
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
        self.held = true;
        self.shapes = Shapes::ALL;
        self.resting = [None; 4];
    }

    /// Forgets everything: after any error.
    pub fn reset(&mut self) {
        let turn = self.turn;
        *self = Self::default();
        self.turn = turn;
    }
}
