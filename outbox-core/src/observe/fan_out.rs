//! Several observers as one.

use std::fmt;
use std::sync::Arc;

use super::{Observer, Transition, notify_all};

/// Tells every one of several observers, in the order in which they were added. A panic in one
/// keeps nothing from the others.
///
/// ```
/// use outbox_core::{Alert, Alerts, FanOut, TracingObserver};
///
/// let observer = FanOut::new()
///     .with(TracingObserver)
///     .with(Alerts::new(|alert: &Alert<'_>| { /* send it on */ }));
/// ```
#[derive(Clone, Default)]
pub struct FanOut(Vec<Arc<dyn Observer>>);

impl FanOut {
    /// No observer yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more.
    #[must_use]
    pub fn with(mut self, observer: impl Observer + 'static) -> Self {
        self.0.push(Arc::new(observer));
        self
    }
}

impl Observer for FanOut {
    fn on(&self, transition: &Transition<'_>) {
        notify_all(&self.0, transition);
    }
}

impl fmt::Debug for FanOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FanOut")
            .field("observers", &self.0.len())
            .finish()
    }
}
