use std::fmt;
use std::time::Duration;

/// The key has used up its rate: nothing was attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimited {
    retry_after: Duration,
}

impl RateLimited {
    pub(super) const fn new(retry_after: Duration) -> Self {
        Self { retry_after }
    }

    /// When the next attempt conforms, if no other takes its place.
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        self.retry_after
    }
}

impl fmt::Display for RateLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the rate of this key is used up")
    }
}

impl std::error::Error for RateLimited {}
