//! The wall clock that signatures need, and their timestamps.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the time of day. Default: the system's; tests bring their own.
#[derive(Clone)]
pub(crate) struct WallClock(Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>);

impl WallClock {
    pub(crate) const SYSTEM: Self = Self(None);

    pub(crate) fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    pub(crate) fn now(&self) -> SystemTime {
        self.0.as_ref().map_or_else(SystemTime::now, |now| now())
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "injected"
        } else {
            "system"
        })
    }
}

/// Whole seconds since the Unix epoch; 0 before it.
pub(crate) fn unix_seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The instant of a timestamp of 1 to 12 digits, and nothing else: no sign, no fraction, no space.
pub(crate) fn parse_timestamp(text: &str) -> Option<SystemTime> {
    if text.is_empty() || text.len() > 12 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    UNIX_EPOCH.checked_add(Duration::from_secs(text.parse().ok()?))
}
