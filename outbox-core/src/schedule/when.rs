//! When a job runs.

use std::fmt;
use std::time::Duration;

/// When a job runs: at an interval, or by a cron expression (feature `cron`).
#[derive(Clone)]
pub struct Schedule(pub(super) When);

#[derive(Clone)]
pub(super) enum When {
    Every(Duration),
    #[cfg(feature = "cron")]
    Cron(super::cron::Cron),
}

impl Schedule {
    /// Every `period`, the first time one period after the scheduler's start. Ticks keep their
    /// distance from each other whatever a run takes.
    #[must_use]
    pub const fn every(period: Duration) -> Self {
        Self(When::Every(period))
    }

    /// By a cron expression of six fields, in UTC: second, minute, hour, day of the month, month,
    /// day of the week (0 is Sunday). `*/5 * * * * *` is every five seconds, `0 0 * * * *` every
    /// hour. Names (`MON`, `JAN`), lists, ranges, steps, `L`, `#` and `@daily` are understood.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where it can't be read, or never comes
    /// (`0 0 0 30 2 *`).
    #[cfg(feature = "cron")]
    pub fn cron(expression: &str) -> Result<Self, crate::Error> {
        Self::cron_in(expression, |_| 0)
    }

    /// By a cron expression in another time zone. `offset` tells how many seconds east of UTC the
    /// zone is at an instant; with jiff: `move |at| zone.to_offset(at.try_into()?)…seconds()`.
    ///
    /// Where summer time skips the hour of a fixed time, the job runs right after the gap; where it
    /// repeats it, the job runs once. Expressions with steps and wildcards follow the clock.
    ///
    /// # Errors
    ///
    /// As [`cron`](Self::cron).
    #[cfg(feature = "cron")]
    pub fn cron_in(
        expression: &str,
        offset: impl Fn(std::time::SystemTime) -> i32 + Send + Sync + 'static,
    ) -> Result<Self, crate::Error> {
        super::cron::Cron::parse(expression, std::sync::Arc::new(offset))
            .map(|cron| Self(When::Cron(cron)))
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            When::Every(period) => f.debug_tuple("Every").field(period).finish(),
            #[cfg(feature = "cron")]
            When::Cron(cron) => f.debug_tuple("Cron").field(&cron.as_str()).finish(),
        }
    }
}
