//! What a claim learns beside the rows it takes.

use std::time::Duration;

use super::{Shape, Shapes};

/// What a claim learned beside the rows it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notes {
    /// Shapes that may have rows for a claim. (Fresh is always in.)
    pub shapes: Shapes,
    /// Whether a destination is held.
    pub held: bool,
    /// When the next delayed row falls due or the next hold ends.
    pub next_due: Option<Duration>,
}

impl Notes {
    /// Reads the column.
    #[must_use]
    pub fn new(column: i64) -> Self {
        let bit = |mask: i64| column & mask != 0;
        let due = u64::try_from(column >> 4).unwrap_or(0);
        Self {
            shapes: Shapes::default()
                .with(Shape::Fresh, true)
                .with(Shape::Due, bit(1))
                .with(Shape::Keyed, bit(2))
                .with(Shape::Parked, bit(4)),
            held: bit(8),
            next_due: (due > 0).then(|| Duration::from_micros(due)),
        }
    }

    /// Adds that so many rows were parked just now.
    pub(super) fn parked(&mut self, rows: usize) {
        let parked = rows > 0 || self.shapes.contains(Shape::Parked);
        self.shapes = self.shapes.with(Shape::Parked, parked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_shapes_and_time() {
        let notes = Notes::new(1 + 8 + 16 * 2_000_000);
        assert!(notes.shapes.contains(Shape::Due) && !notes.shapes.contains(Shape::Keyed));
        assert!(notes.held);
        assert_eq!(notes.next_due, Some(Duration::from_secs(2)));
        assert_eq!(Notes::new(2).next_due, None);
    }
}
