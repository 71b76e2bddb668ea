//! The clock of stores that bring their own, and conversions between instants and the integer
//! microseconds that databases store.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[doc(hidden)]
pub use crate::calendar::rfc3339;

/// The clock of a store whose database has none (memory, SQLite).
///
/// # Contract
///
/// It never goes back.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> SystemTime;
}

/// The machine's time when it was made, and from there the monotonic clock: a wall clock that is
/// set back moves nothing.
#[derive(Debug, Clone)]
pub struct SystemClock {
    wall: SystemTime,
    start: Instant,
}

impl SystemClock {
    /// The machine's time.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two calls give two values")]
    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    pub fn new() -> Self {
        Self {
            wall: SystemTime::now(),
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        self.wall + self.start.elapsed()
    }
}

/// A clock for tests: it moves when told to. Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use outbox_core::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.clone().advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), before + Duration::from_secs(60));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    micros: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that stands at the start of the year 2026 (UTC).
    #[must_use]
    pub fn new() -> Self {
        Self {
            micros: Arc::new(AtomicI64::new(1_767_225_600_000_000)),
        }
    }

    /// Moves the time forward, in whole microseconds.
    pub fn advance(&self, by: Duration) {
        let by = duration_micros(by);
        let mut now = self.micros.load(Ordering::Acquire);
        while let Err(seen) = self.micros.compare_exchange(
            now,
            now.saturating_add(by),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            now = seen;
        }
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        from_micros(self.micros.load(Ordering::Acquire))
    }
}

/// Microseconds since the Unix epoch, saturating at both ends.
#[must_use]
pub fn to_micros(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => duration_micros(after),
        Err(before) => -duration_micros(before.duration()),
    }
}

/// The instant that many microseconds after (or before) the Unix epoch.
#[must_use]
pub fn from_micros(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

/// A duration in whole microseconds, saturating at 292,000 years.
#[must_use]
pub fn duration_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_both_ends() {
        for micros in [0, 1, -1, 1_700_000_000_123_456, -62_135_596_800_000_000] {
            assert_eq!(to_micros(from_micros(micros)), micros);
        }
        assert_eq!(duration_micros(Duration::MAX), i64::MAX);
    }
}
