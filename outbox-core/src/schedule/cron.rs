//! Cron expressions over plain seconds, so that no date library comes along.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};

use crate::Error;
use crate::calendar::{DAY, date_of, day_of};
use crate::faults::contained;

type Offset = Arc<dyn Fn(SystemTime) -> i32 + Send + Sync>;

/// No zone is further from UTC, and none changes its offset twice in that time.
const SEARCH: i64 = DAY;

/// A parsed expression in a time zone.
#[derive(Clone)]
pub(super) struct Cron {
    inner: Arc<croner::Cron>,
    offset: Offset,
}

impl Cron {
    pub(super) fn parse(expression: &str, offset: Offset) -> Result<Self, Error> {
        let refuse = |problem: &str| {
            let problem = format!("is {expression:?}: {problem}; {EXAMPLE}");
            Error::invalid_config("cron", problem)
        };
        let inner = parse(expression)
            .map_err(|error| refuse(&why_refused(expression)).with_source(error))?;
        let cron = Self {
            inner: Arc::new(inner),
            offset,
        };
        // From the epoch on, every date of the calendar comes within 40 years.
        contained(|| cron.after(UNIX_EPOCH))
            .map_err(|panic| refuse(&format!("its time zone's offset panicked: {panic}")))?
            .ok_or_else(|| refuse("it names a time that never comes"))?;
        Ok(cron)
    }

    pub(super) fn as_str(&self) -> &str {
        self.inner.as_str()
    }

    /// The first tick after `at`.
    pub(super) fn after(&self, at: SystemTime) -> Option<SystemTime> {
        let from = self.moment(seconds(at));
        let next = self.inner.find_next_occurrence(&from, false).ok()?;
        Some(instant(next.at))
    }

    /// The last tick at or before `at`.
    pub(super) fn up_to(&self, at: SystemTime) -> Option<SystemTime> {
        let from = self.moment(seconds(at));
        let last = self.inner.find_previous_occurrence(&from, true).ok()?;
        Some(instant(last.at))
    }

    fn moment(&self, at: i64) -> Moment<'_> {
        Moment {
            at,
            offset: &*self.offset,
        }
    }
}

const EXAMPLE: &str = "an example: `0 30 9 * * MON-FRI` is 09:30:00 from Monday to Friday";

/// Each field, and what it takes.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0-59"),
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of the month", "1-31 or L"),
    ("month", "1-12 or JAN-DEC"),
    ("day of the week", "0-7 or SUN-SAT"),
];

fn parse(expression: &str) -> Result<croner::Cron, CronError> {
    CronParser::builder()
        .seconds(Seconds::Required)
        .year(Year::Disallowed)
        .build()
        .parse(expression)
}

/// What is wrong with an expression that was refused, in the words of its fields.
fn why_refused(expression: &str) -> String {
    let fields: Vec<_> = expression.split_whitespace().collect();
    if expression.trim_start().starts_with('@') {
        return "of the names with `@` only @yearly, @monthly, @weekly, @daily and @hourly are known (for an interval: `Schedule::every`)"
            .to_owned();
    }
    if fields.len() != FIELDS.len() {
        let names = FIELDS.map(|(name, _)| name).join(", ");
        let hint = match fields.len() {
            5 => format!(" (in a crontab's five the second is missing: `0 {expression}`)"),
            _ => String::new(),
        };
        return format!("6 fields are needed, not {}: {names}{hint}", fields.len());
    }
    for (index, (name, takes)) in FIELDS.iter().enumerate() {
        let mut alone = ["*"; FIELDS.len()];
        alone[index] = fields[index];
        if parse(&alone.join(" ")).is_err() {
            let field = fields[index];
            return format!(
                "the {name} `{field}` is not understood (it takes {takes}, `*`, lists, ranges and steps such as `*/5`)"
            );
        }
    }
    "it is not understood".to_owned()
}

/// Whole seconds since the epoch, rounded down.
fn seconds(at: SystemTime) -> i64 {
    crate::clock::to_micros(at).div_euclid(1_000_000)
}

fn instant(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

/// An instant in a time zone, as croner wants it.
#[derive(Clone)]
struct Moment<'a> {
    at: i64,
    offset: &'a (dyn Fn(SystemTime) -> i32 + Send + Sync),
}

impl Moment<'_> {
    fn local(&self) -> i64 {
        self.at + self.offset_at(self.at)
    }

    fn offset_at(&self, at: i64) -> i64 {
        i64::from((self.offset)(instant(at)))
    }

    fn with(&self, at: i64) -> Self {
        Self { at, ..*self }
    }
}

impl CronDateTime for Moment<'_> {
    fn to_civil(&self) -> CivilDateTime {
        let local = self.local();
        let (year, month, day) = date_of(local.div_euclid(DAY));
        let second = u32::try_from(local.rem_euclid(DAY)).unwrap_or_default();
        let time = CivilTime::from_hms_opt(second / 3_600, second / 60 % 60, second % 60);
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(year, month, day),
            time.unwrap_or(CivilTime::MIDNIGHT),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        // The epoch was a Thursday.
        let day = (self.local().div_euclid(DAY) + 4).rem_euclid(7);
        Weekday::from_days_from_sunday(u32::try_from(day).unwrap_or_default())
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let days = day_of(civil.year(), civil.month(), civil.day());
        let second = civil.hour() * 3_600 + civil.minute() * 60 + civil.second();
        let local = days * DAY + i64::from(second);
        let offsets = [local - SEARCH, local + SEARCH].map(|at| self.offset_at(at));
        let [before, after] =
            offsets.map(|o| Some(local - o).filter(|at| self.offset_at(*at) == o));
        Ok(match (before, after) {
            (Some(one), Some(other)) if one != other => {
                let (early, late) = (one.min(other), one.max(other));
                Resolution::Ambiguous(self.with(early), self.with(late))
            }
            (Some(at), _) | (None, Some(at)) => Resolution::Single(self.with(at)),
            (None, None) => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        Some(self.with(self.at.checked_add(seconds)?))
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: i32, month: u32, day: u32, hour: i64, minute: i64, second: i64) -> SystemTime {
        let days = day_of(year, month, day);
        instant(days * DAY + hour * 3_600 + minute * 60 + second)
    }

    fn utc(expression: &str) -> Cron {
        Cron::parse(expression, Arc::new(|_| 0)).unwrap()
    }

    /// Central Europe in 2026: an hour more from 29 March to 25 October, 01:00 UTC.
    fn berlin(expression: &str) -> Cron {
        let summer = at(2026, 3, 29, 1, 0, 0)..at(2026, 10, 25, 1, 0, 0);
        let offset = move |at| if summer.contains(&at) { 7_200 } else { 3_600 };
        Cron::parse(expression, Arc::new(offset)).unwrap()
    }

    #[test]
    fn seconds_are_the_first_field() {
        let cron = utc("*/5 * * * * *");
        let start = at(2026, 5, 6, 7, 8, 9);
        assert_eq!(cron.after(start), Some(at(2026, 5, 6, 7, 8, 10)));
        assert_eq!(cron.up_to(start), Some(at(2026, 5, 6, 7, 8, 5)));
        let tick = at(2026, 5, 6, 7, 8, 10);
        assert_eq!(cron.up_to(tick), Some(tick));
        assert_eq!(cron.after(tick), Some(at(2026, 5, 6, 7, 8, 15)));
    }

    #[test]
    fn the_expressions_of_the_manual_mean_what_it_says() {
        let start = at(2026, 5, 6, 7, 8, 9); // a Wednesday
        for (expression, next) in [
            ("* * * * * *", at(2026, 5, 6, 7, 8, 10)),
            ("0 * * * * *", at(2026, 5, 6, 7, 9, 0)),
            ("0 0 * * * *", at(2026, 5, 6, 8, 0, 0)),
            ("0 0 0 * * *", at(2026, 5, 7, 0, 0, 0)),
            ("0 0 0 * * 0", at(2026, 5, 10, 0, 0, 0)),
            ("0 */5 * * * *", at(2026, 5, 6, 7, 10, 0)),
            ("0 30 9 * * MON-FRI", at(2026, 5, 6, 9, 30, 0)),
            ("0 0 0 L * *", at(2026, 5, 31, 0, 0, 0)),
            ("0 0 0 29 2 *", at(2028, 2, 29, 0, 0, 0)),
        ] {
            assert_eq!(utc(expression).after(start), Some(next), "{expression}");
        }
    }

    #[test]
    fn a_fraction_of_a_second_is_no_tick() {
        let cron = utc("* * * * * *");
        let start = at(2026, 1, 1, 0, 0, 0) + Duration::from_millis(999);
        assert_eq!(cron.after(start), Some(at(2026, 1, 1, 0, 0, 1)));
    }

    #[test]
    fn refuses_what_it_cannot_read_and_what_never_comes() {
        for expression in [
            "",
            "* * * * *",
            "* * * * * * *",
            "61 * * * * *",
            "0 0 0 30 2 *",
        ] {
            let error = Cron::parse(expression, Arc::new(|_| 0)).err().unwrap();
            assert!(
                error.to_string().starts_with("setting `cron` is "),
                "{error}"
            );
        }
    }

    #[test]
    fn says_which_field_is_wrong_and_shows_a_right_one() {
        for (expression, problem) in [
            (
                "61 * * * * *",
                "the second `61` is not understood (it takes 0-59,",
            ),
            (
                "0 0 25 * * *",
                "the hour `25` is not understood (it takes 0-23,",
            ),
            ("a b c d e f", "the second `a` is not"),
            ("0 0 0 * * MON#6", "the day of the week `MON#6` is not"),
            ("0 0 0 1-0 * *", "the day of the month `1-0` is not"),
            ("0/5 * * * * *", "the second `0/5` is not"),
            (
                "30 9 * * *",
                "6 fields are needed, not 5: second, minute, hour, day of the month, month, day of the week (in a crontab's five the second is missing: `0 30 9 * * *`)",
            ),
            ("", "6 fields are needed, not 0:"),
            ("@every 5s", "of the names with `@` only"),
            ("0 0 0 30 2 *", "it names a time that never comes"),
        ] {
            let error = Cron::parse(expression, Arc::new(|_| 0)).err().unwrap();
            let text = error.to_string();
            let expected = format!("setting `cron` is {expression:?}: {problem}");
            assert!(text.starts_with(&expected), "{text}");
            assert!(
                text.ends_with(
                    "an example: `0 30 9 * * MON-FRI` is 09:30:00 from Monday to Friday"
                ),
                "{text}"
            );
        }
        for name in ["@yearly", "@monthly", "@weekly", "@daily", "@hourly"] {
            assert!(parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_fixed_time_in_the_gap_of_spring_runs_right_after_it() {
        let cron = berlin("0 30 2 * * *");
        let before = at(2026, 3, 28, 12, 0, 0);
        let next = cron.after(before).unwrap();
        assert_eq!(next, at(2026, 3, 29, 1, 0, 0));
        assert_eq!(cron.after(next), Some(at(2026, 3, 30, 0, 30, 0)));
    }

    #[test]
    fn a_fixed_time_that_autumn_repeats_runs_once() {
        let cron = berlin("0 30 2 * * *");
        let first = cron.after(at(2026, 10, 24, 12, 0, 0)).unwrap();
        assert_eq!(first, at(2026, 10, 25, 0, 30, 0));
        assert_eq!(cron.after(first), Some(at(2026, 10, 26, 1, 30, 0)));
    }

    #[test]
    fn both_searches_agree_on_every_tick_of_a_year_with_summer_time() {
        for expression in [
            "0 30 2 * * *",
            "0 */30 * * * *",
            "0 0 0 L * *",
            "7 7 1-3 * * SUN",
        ] {
            let cron = berlin(expression);
            let mut tick = cron.after(at(2026, 1, 1, 0, 0, 0)).unwrap();
            while tick < at(2027, 1, 1, 0, 0, 0) {
                assert_eq!(cron.up_to(tick), Some(tick), "{expression}");
                let next = cron.after(tick).unwrap();
                let just_before = next - Duration::from_secs(1);
                assert_eq!(cron.up_to(just_before), Some(tick), "{expression}");
                tick = next;
            }
        }
    }

    #[test]
    fn steps_follow_the_clock_through_both_changes() {
        let cron = berlin("0 */30 * * * *");
        let ticks = |mut from: SystemTime, hours: u64| {
            let end = from + Duration::from_secs(hours * 3_600);
            let mut count = 0;
            while let Some(next) = cron.after(from).filter(|next| *next <= end) {
                count += 1;
                from = next;
            }
            count
        };
        assert_eq!(ticks(at(2026, 3, 28, 22, 0, 0), 6), 12);
        assert_eq!(ticks(at(2026, 10, 24, 22, 0, 0), 6), 12);
    }
}
