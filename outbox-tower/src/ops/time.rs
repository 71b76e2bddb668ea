//! Instants as RFC 3339 has them.

use std::time::{Duration, SystemTime};

use outbox_core::clock::to_micros;
use serde::{Deserialize, Deserializer};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400;

/// `2026-11-29T12:34:56.000001Z`.
pub(super) fn rfc3339(at: SystemTime) -> String {
    let micros = to_micros(at);
    let (seconds, micros) = (micros.div_euclid(SECOND), micros.rem_euclid(SECOND));
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of the proleptic Gregorian calendar, by days since the Unix epoch (Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms").
const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let january_or_february = if month <= 2 { 1 } else { 0 };
    (year_of_era + era * 400 + january_or_february, month, day)
}

/// A period in seconds, fractions allowed.
pub(super) fn seconds<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(input)?;
    seconds
        .map(|seconds| Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_days_before_and_after_the_epoch_and_leap_days() {
        let at = |micros| rfc3339(outbox_core::clock::from_micros(micros));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(at(951_782_400_000_000), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_709_164_800_123_456), "2024-02-29T00:00:00.123456Z");
        assert_eq!(at(1_798_761_599_000_000), "2026-12-31T23:59:59.000000Z");
    }
}
