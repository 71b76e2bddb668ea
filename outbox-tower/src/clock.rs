//! The clock of the layers that only read it.

use std::sync::Arc;
use std::time::Instant;

use outbox_core::Timer;

/// The system's monotonic clock, or a timer's.
#[derive(Clone, Default)]
pub(crate) enum Clock {
    #[default]
    System,
    Timer(Arc<dyn Timer>),
}

impl Clock {
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::System => Instant::now(),
            Self::Timer(timer) => timer.now(),
        }
    }
}
