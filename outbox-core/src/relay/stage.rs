//! How far a run has come.

use std::time::Instant;

/// When a run ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Forever,
    Once,
    UntilIdle,
}

/// What a run still does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Claims, delivers, settles.
    Running,
    /// Claims no more; what it holds is delivered and settled. For runs that end by themselves.
    Finishing,
    /// Claims no more and starts nothing; attempts under way may end until then.
    Draining { until: Instant },
    /// No attempt is left; what is finished is settled until then, with one try each.
    Closing { until: Instant },
    /// As `Closing`, but begins no store call at all.
    Aborted { until: Instant },
}

impl Stage {
    /// Whether an attempt may begin.
    pub(super) const fn starts(self) -> bool {
        matches!(self, Self::Running | Self::Finishing)
    }

    pub(super) const fn claims(self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether a failed call is tried again.
    pub(super) const fn tries_again(self) -> bool {
        !matches!(self, Self::Closing { .. } | Self::Aborted { .. })
    }

    pub(super) const fn until(self) -> Option<Instant> {
        match self {
            Self::Running | Self::Finishing => None,
            Self::Draining { until } | Self::Closing { until } | Self::Aborted { until } => {
                Some(until)
            }
        }
    }
}
