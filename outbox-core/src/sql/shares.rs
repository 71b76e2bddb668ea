//! Sharing a claim's rows among the shapes.

/// A kind of open row that a statement of its own claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// Never delayed, retried or released: by `seq`.
    Fresh,
    /// Delayed, retried, deferred, released or replayed: by the time at which it falls due.
    Due,
    /// With an ordering key: by key.
    Keyed,
    /// Met by a claim while its destination was held or left out: by destination.
    Parked,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 4] = [Self::Fresh, Self::Due, Self::Keyed, Self::Parked];

    /// The stored number of fresh rows.
    pub const FRESH: i16 = 0;
    /// The stored number of due rows.
    pub const DUE: i16 = 1;
    /// The stored number of keyed rows that may be claimed in their turn.
    pub const KEYED: i16 = 2;
    /// The stored number of parked rows.
    pub const PARKED: i16 = 3;
    /// The stored number of keyed rows that wait for a time.
    pub const KEYED_LATER: i16 = 4;

    const fn index(self) -> usize {
        match self {
            Self::Fresh => 0,
            Self::Due => 1,
            Self::Keyed => 2,
            Self::Parked => 3,
        }
    }
}

/// A set of shapes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shapes([bool; 4]);

impl Shapes {
    /// All of them.
    pub const ALL: Self = Self([true; 4]);

    /// The set without this shape, or with it.
    #[must_use]
    pub const fn with(mut self, shape: Shape, present: bool) -> Self {
        self.0[shape.index()] = present;
        self
    }

    /// Whether the shape is in the set.
    #[must_use]
    pub const fn contains(self, shape: Shape) -> bool {
        self.0[shape.index()]
    }
}

/// Decides which shape a claim asks next, and for how many rows.
///
/// Each shape that may have rows has an equal share; what one leaves, the others may use. Which goes
/// first changes with each claim (`turn`), so that claims of few rows are fair too. Keyed rows are
/// asked for once, for all rows that are left: a key whose run was taken gives no more. What is left
/// for less than a third of the claim is left to the next claim: a statement costs as much as many rows.
///
/// ```
/// use outbox_core::sql::{Shape, Shapes, Shares};
///
/// let both = Shapes::default().with(Shape::Fresh, true).with(Shape::Due, true);
/// let mut shares = Shares::new(100, both, 0);
/// assert_eq!(shares.next(), Some((Shape::Fresh, 50)));
/// shares.took(Shape::Fresh, 50, true);
/// assert_eq!(shares.next(), Some((Shape::Due, 50)));
/// shares.took(Shape::Due, 3, false);
/// assert_eq!(shares.next(), Some((Shape::Fresh, 47)));
/// shares.took(Shape::Fresh, 20, false);
/// assert_eq!(shares.next(), None);
/// ```
#[derive(Debug)]
pub struct Shares {
    rows: usize,
    free: usize,
    /// Shapes that have not had their share yet, and then those that filled it.
    waiting: Vec<Shape>,
    filled: Vec<Shape>,
}

impl Shares {
    /// A claim of `rows` rows among `shapes`.
    #[must_use]
    pub fn new(rows: usize, shapes: Shapes, turn: usize) -> Self {
        let mut waiting: Vec<Shape> = Shape::ALL
            .into_iter()
            .filter(|shape| shapes.contains(*shape))
            .collect();
        if !waiting.is_empty() {
            let first = turn % waiting.len();
            waiting.rotate_left(first);
            if waiting[0] != Shape::Keyed || rows >= waiting.len() {
                waiting.sort_by_key(|shape| *shape == Shape::Keyed);
            }
        }
        Self {
            rows,
            free: rows,
            waiting,
            filled: Vec::new(),
        }
    }

    /// Keyed rows first: where the others left no room for the next one.
    #[must_use]
    pub fn keyed_first(mut self) -> Self {
        self.waiting.sort_by_key(|shape| *shape != Shape::Keyed);
        self
    }

    /// The shape to ask now and its limit; `None` where the claim is complete.
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "its answer depends on `took`"
    )]
    pub fn next(&mut self) -> Option<(Shape, usize)> {
        if self.free == 0 {
            return None;
        }
        if self.waiting.is_empty() {
            let worth = self.free.saturating_mul(3) >= self.rows;
            let filled = self.filled.first().filter(|_| worth);
            return filled.map(|shape| (*shape, self.free));
        }
        let share = match self.waiting[0] {
            Shape::Keyed => self.free,
            _ => self.free.div_ceil(self.waiting.len()),
        };
        Some((self.waiting[0], share))
    }

    /// Notes that a shape gave `taken` rows, and whether it may have `more`.
    pub fn took(&mut self, shape: Shape, taken: usize, more: bool) {
        self.free = self.free.saturating_sub(taken);
        self.waiting.retain(|other| *other != shape);
        self.filled.retain(|other| *other != shape);
        if more && shape != Shape::Keyed {
            self.filled.push(shape);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_goes_to_each_shape_in_turn() {
        let first = |turn| Shares::new(1, Shapes::ALL, turn).next().unwrap().0;
        assert_eq!([0, 1, 2, 3, 4].map(first)[..4], Shape::ALL);
        assert_eq!(first(4), Shape::Fresh);
    }

    #[test]
    fn keys_have_what_the_others_leave() {
        let mut shares = Shares::new(10, Shapes::ALL, 2);
        for shape in [Shape::Parked, Shape::Fresh, Shape::Due] {
            assert_eq!(shares.next().unwrap().0, shape);
            shares.took(shape, 1, false);
        }
        assert_eq!(shares.next(), Some((Shape::Keyed, 7)));
        shares.took(Shape::Keyed, 7, true);
        assert_eq!(shares.next(), None);
    }

    #[test]
    fn keys_may_go_first() {
        let both = Shapes::default()
            .with(Shape::Fresh, true)
            .with(Shape::Keyed, true);
        let mut shares = Shares::new(10, both, 0).keyed_first();
        assert_eq!(shares.next(), Some((Shape::Keyed, 10)));
        shares.took(Shape::Keyed, 2, false);
        assert_eq!(shares.next(), Some((Shape::Fresh, 8)));
    }

    #[test]
    fn an_empty_shape_lends_its_share_to_the_next() {
        let mut shares = Shares::new(1, Shapes::ALL, 1);
        for shape in [Shape::Due, Shape::Parked, Shape::Fresh, Shape::Keyed] {
            assert_eq!(shares.next(), Some((shape, 1)));
            shares.took(shape, 0, false);
        }
        assert_eq!(shares.next(), None);
    }
}
