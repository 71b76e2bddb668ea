//! RFC 3339, for CloudEvents' `time`.

use std::time::{SystemTime, UNIX_EPOCH};

/// The instant in UTC with microseconds: `2026-11-29T13:28:41.000000Z`. Instants before 1970 and
/// after 9999 are cut to those bounds.
pub(super) fn rfc3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().min(LAST);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let micros = since.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// 9999-12-31T23:59:59Z.
const LAST: u64 = 253_402_300_799;

/// Year, month and day of a day since the epoch (Howard Hinnant, "chrono-compatible low-level date
/// algorithms", `civil_from_days`).
const fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn writes_known_instants() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_614_265_330), "2021-02-25T15:02:10.000000Z");
        assert_eq!(at(LAST), "9999-12-31T23:59:59.000000Z");
        assert_eq!(at(LAST + 1), at(LAST));
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), at(0));
    }
}
