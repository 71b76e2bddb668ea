//! The flag behind a readiness probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the process should get new work: what a readiness probe answers. Clones share the flag.
///
/// False until the [`Supervisor`](crate::Supervisor) has started its tasks, and false again, for
/// good, as the first step of its shutdown, before anything is told to stop.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// True between start and shutdown.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }
}
