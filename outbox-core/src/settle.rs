//! How a claimed event ends, and what the store answers.

use std::time::Duration;

use crate::{DeathReason, Lease};

/// What to do with one claimed event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// The proof.
    pub lease: Lease,
    /// What became of it.
    pub outcome: Outcome,
}

impl Settlement {
    /// Settles the event under `lease` as `outcome`.
    #[must_use]
    pub const fn new(lease: Lease, outcome: Outcome) -> Self {
        Self { lease, outcome }
    }
}

/// What became of a claimed event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Delivered: it leaves the open rows.
    Published,
    /// The attempt failed: due again after `after`, the attempt stays counted.
    Retry {
        /// From now, by the store's clock.
        after: Duration,
        /// Kept as `last_error`.
        error: String,
    },
    /// Nothing was attempted (a limiter, an open circuit): due again after `after`, the attempt is
    /// refunded.
    Defer {
        /// From now, by the store's clock.
        after: Duration,
        /// Kept as `last_error`.
        reason: String,
    },
    /// Nothing was attempted: due at once, the attempt is refunded.
    Release,
    /// It will not be delivered: it leaves the open rows for the dead letters.
    Dead {
        /// Why.
        reason: DeathReason,
        /// Kept as `last_error`.
        error: String,
    },
}

/// Whether a lease was still the caller's when the store acted on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseStatus {
    /// It was: the change is made.
    Ours,
    /// Another claim holds the event now; or the lease was to be extended, had ended, and its event has
    /// a key, of which another may be in flight. Nothing is changed.
    Lost,
    /// The lease has ended and no claim holds the event: it was settled, released or discarded
    /// before, perhaps by this very call, repeated after an ambiguous error. Nothing is changed.
    Unknown,
}

/// Holds back a destination, in state that all relays share.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// No claims for this long from now. Of two such holds the later end stays.
    For {
        /// From now, by the store's clock.
        period: Duration,
        /// Shown to operators.
        reason: String,
    },
    /// No claims until an operator frees it.
    Disabled {
        /// Shown to operators.
        reason: String,
    },
    /// Lifts either.
    Free,
}
