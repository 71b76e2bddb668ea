use std::fmt;
use std::time::Duration;

/// All slots of the key are taken: nothing was attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saturated {
    retry_after: Duration,
}

impl Saturated {
    pub(super) const fn new(retry_after: Duration) -> Self {
        Self { retry_after }
    }

    /// When it is worth trying again: [`ConcurrencyLayer::retry_after`](super::ConcurrencyLayer::retry_after).
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        self.retry_after
    }
}

impl fmt::Display for Saturated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all slots of this key are taken")
    }
}

impl std::error::Error for Saturated {}
