//! What a prune deletes.

use std::time::Duration;

use crate::{Prune, Pruned};

/// A table to prune.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every adapter must prune each")]
pub enum Pruning {
    /// Published rows, and the records of discarded letters.
    Published,
    /// Dead letters.
    Dead,
    /// De-duplication keys whose event is neither open nor dead.
    Dedup,
}

impl Pruning {
    /// What a prune is asked to do: the tables, and how old their rows may become.
    #[must_use]
    pub fn of(prune: &Prune) -> Vec<(Self, Duration)> {
        let tables = [
            (Self::Published, prune.published_after),
            (Self::Dead, prune.dead_after),
            (Self::Dedup, prune.dedup_after),
        ];
        tables
            .into_iter()
            .filter_map(|(table, age)| Some((table, age?)))
            .collect()
    }

    /// Puts down how many rows were deleted.
    pub const fn report(self, rows: u64, pruned: &mut Pruned) {
        match self {
            Self::Published => pruned.published = rows,
            Self::Dead => pruned.dead = rows,
            Self::Dedup => pruned.dedup = rows,
        }
    }
}
