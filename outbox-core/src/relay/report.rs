//! What a run did.

use std::time::Duration;

use crate::Outcome;

/// What a run of a relay did, counted as the store answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Events delivered and settled.
    pub published: u64,
    /// Failed attempts that will be made again.
    pub retried: u64,
    /// Events that a limiter, an open circuit or a pause put off, uncharged.
    pub deferred: u64,
    /// Events that became dead letters.
    pub dead: u64,
    /// Events that never started and went back, uncharged.
    pub released: u64,
    /// Events given up at the end of the drain budget or by the abort signal: their leases expire by
    /// themselves and they are delivered again.
    pub abandoned: u64,
    /// Events whose lease was lost before they were settled; somebody else has them.
    pub lost: u64,
    /// How long the run took.
    pub took: Duration,
}

impl Report {
    pub(super) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Published => self.published += 1,
            Outcome::Retry { .. } => self.retried += 1,
            Outcome::Defer { .. } => self.deferred += 1,
            Outcome::Dead { .. } => self.dead += 1,
            Outcome::Release => self.released += 1,
        }
    }
}
