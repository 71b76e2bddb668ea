//! Dates of the Gregorian calendar. (Howard Hinnant, "chrono-compatible low-level date algorithms":
//! years begin in March, in eras of 400 years.)

use std::time::SystemTime;

use crate::clock::to_micros;

const SECOND: i64 = 1_000_000;
pub(crate) const DAY: i64 = 86_400;

/// The first and the last second of the years 0 to 9999, which are those of RFC 3339.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// The instant in UTC as RFC 3339 has it, with microseconds: `2026-11-29T13:28:41.000000Z`. Those that
/// it has no text for are cut to its bounds.
#[must_use]
pub fn rfc3339(at: SystemTime) -> String {
    let micros = to_micros(at);
    let (seconds, micros) = (micros.div_euclid(SECOND), micros.rem_euclid(SECOND));
    let seconds = seconds.clamp(FIRST, LAST);
    let (year, month, day) = date_of(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of a day since the epoch.
pub(crate) fn date_of(days: i64) -> (i32, u32, u32) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (
        i32::try_from(year).unwrap_or(i32::MAX),
        u32::try_from(month).unwrap_or(1),
        u32::try_from(day).unwrap_or(1),
    )
}

/// The reverse.
#[cfg(any(feature = "cron", test))]
pub(crate) fn day_of(year: i32, month: u32, day: u32) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    let year = i64::from(year) - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::from_micros;

    #[test]
    fn dates_go_there_and_back() {
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(-1), (1969, 12, 31));
        assert_eq!(date_of(11_016), (2000, 2, 29));
        for days in (-800_000..800_000).step_by(13) {
            let (year, month, day) = date_of(days);
            assert_eq!(day_of(year, month, day), days);
        }
    }

    #[test]
    fn writes_instants_before_and_after_the_epoch_and_leap_days() {
        let at = |micros| rfc3339(from_micros(micros));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(at(951_782_400_000_000), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_614_265_330_000_000), "2021-02-25T15:02:10.000000Z");
        assert_eq!(at(1_709_164_800_123_456), "2024-02-29T00:00:00.123456Z");
        assert_eq!(at(LAST * SECOND), "9999-12-31T23:59:59.000000Z");
    }

    #[test]
    fn writes_the_first_and_last_second_for_instants_that_rfc_3339_has_no_text_for() {
        let at = |seconds| rfc3339(from_micros(seconds * SECOND));
        assert_eq!(at(FIRST), "0000-01-01T00:00:00.000000Z");
        assert_eq!(at(FIRST - 1), at(FIRST));
        assert_eq!(at(LAST + 1), at(LAST));
    }
}
