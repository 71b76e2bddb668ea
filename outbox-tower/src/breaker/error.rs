use std::fmt;
use std::time::Duration;

/// The circuit of the key is open: nothing was attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitOpen {
    retry_after: Duration,
}

impl CircuitOpen {
    pub(super) const fn new(retry_after: Duration) -> Self {
        Self { retry_after }
    }

    /// When the next probe is let through.
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        self.retry_after
    }
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the circuit of this key is open")
    }
}

impl std::error::Error for CircuitOpen {}
