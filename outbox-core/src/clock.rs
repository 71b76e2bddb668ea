//! Conversions between instants and the integer microseconds that databases store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
