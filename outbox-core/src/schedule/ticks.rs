//! Which runs are due: arithmetic over two clocks, with no waiting in it.

use std::time::{Duration, Instant, SystemTime};

use super::when::{Schedule, When};

/// Both clocks, read together. Intervals go by the first, cron expressions by the second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) steady: Instant,
    #[cfg_attr(
        not(feature = "cron"),
        expect(dead_code, reason = "cron alone is civil time")
    )]
    pub(super) wall: SystemTime,
}

/// What is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing, for this long at most.
    In(Duration),
    /// These ticks, oldest first; the time of each where it is a cron expression's.
    Now(Vec<Option<SystemTime>>),
}

/// The longest sleep for a cron tick: then the wall clock is looked at again, as it may be set.
#[cfg(feature = "cron")]
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How far a schedule has come.
pub(super) enum Ticks {
    Every {
        period: Duration,
        next: Instant,
    },
    #[cfg(feature = "cron")]
    Cron {
        cron: super::cron::Cron,
        /// The last tick that was handed out, or the start.
        last: SystemTime,
    },
}

impl Ticks {
    pub(super) fn new(schedule: &Schedule, now: Now) -> Self {
        match &schedule.0 {
            When::Every(period) => Self::Every {
                period: *period,
                next: later(now.steady, *period),
            },
            #[cfg(feature = "cron")]
            When::Cron(cron) => Self::Cron {
                cron: cron.clone(),
                last: now.wall,
            },
        }
    }

    /// The ticks since the last look, the newest `most` of them. All of them count as seen.
    pub(super) fn look(&mut self, now: Now, most: usize) -> Due {
        match self {
            Self::Every { period, next } => every(*period, next, now.steady, most),
            #[cfg(feature = "cron")]
            Self::Cron { cron, last } => civil(cron, last, now.wall, most),
        }
    }

    /// Until the next tick after now.
    pub(super) fn until_next(&self, now: Now) -> Duration {
        match self {
            Self::Every { next, .. } => next.saturating_duration_since(now.steady),
            #[cfg(feature = "cron")]
            Self::Cron { cron, .. } => cron
                .after(now.wall)
                .and_then(|next| next.duration_since(now.wall).ok())
                .unwrap_or(LOOK_AGAIN),
        }
    }
}

fn every(period: Duration, next: &mut Instant, now: Instant, most: usize) -> Due {
    let Some(late) = now.checked_duration_since(*next) else {
        return Due::In(next.duration_since(now));
    };
    let passed = late.as_nanos() / period.as_nanos().max(1);
    let into_period = late.as_nanos() % period.as_nanos().max(1);
    // Below the period, so it fits.
    let rest = period.saturating_sub(Duration::from_nanos_u128(into_period));
    *next = later(now, rest);
    let due = usize::try_from(passed)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    Due::Now(vec![None; due.min(most)])
}

#[cfg(feature = "cron")]
fn civil(cron: &super::cron::Cron, last: &mut SystemTime, now: SystemTime, most: usize) -> Due {
    if now + LOOK_AGAIN < *last {
        // The clock was set back: waiting for it to catch up would stop the job. A smaller step
        // repeats no tick.
        *last = now;
    }
    let mut ticks = Vec::new();
    let mut newest = cron.up_to(now).filter(|tick| *tick > *last);
    if newest.is_none() {
        let next = cron.after(now.max(*last));
        let wait = next.and_then(|next| next.duration_since(now).ok());
        return Due::In(wait.map_or(LOOK_AGAIN, |wait| wait.min(LOOK_AGAIN)));
    }
    let seen = std::mem::replace(last, newest.unwrap_or(now));
    while let Some(tick) = newest.filter(|tick| *tick > seen && ticks.len() < most) {
        ticks.push(Some(tick));
        newest = cron.up_to(tick - Duration::from_secs(1));
    }
    ticks.reverse();
    Due::Now(ticks)
}

/// The clock can't count to the end of a very long period: then it never comes.
fn later(from: Instant, by: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    from.checked_add(by).unwrap_or_else(|| from + CENTURY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(
        clippy::disallowed_methods,
        reason = "an instant can only be made from the clock"
    )]
    fn start() -> Now {
        Now {
            steady: Instant::now(),
            wall: SystemTime::UNIX_EPOCH + 1_000_000 * SECOND,
        }
    }

    fn after(now: Now, by: Duration) -> Now {
        Now {
            steady: now.steady + by,
            wall: now.wall + by,
        }
    }

    #[test]
    fn an_interval_keeps_its_phase_however_late_it_is_looked_at() {
        let start = start();
        let mut ticks = Ticks::new(&Schedule::every(10 * SECOND), start);
        assert_eq!(ticks.look(start, 9), Due::In(10 * SECOND));
        assert_eq!(
            ticks.look(after(start, 13 * SECOND), 9),
            Due::Now(vec![None])
        );
        assert_eq!(
            ticks.look(after(start, 13 * SECOND), 9),
            Due::In(7 * SECOND)
        );
        assert_eq!(
            ticks.look(after(start, 45 * SECOND), 9),
            Due::Now(vec![None; 3])
        );
        assert_eq!(
            ticks.look(after(start, 45 * SECOND), 9),
            Due::In(5 * SECOND)
        );
    }

    #[test]
    fn catching_up_is_bounded_after_any_pause() {
        let start = start();
        let mut ticks = Ticks::new(&Schedule::every(Duration::from_nanos(1)), start);
        let later = after(start, 100_000_000 * SECOND);
        assert_eq!(ticks.look(later, 3), Due::Now(vec![None; 3]));
        let mut never = Ticks::new(&Schedule::every(Duration::MAX), start);
        assert!(matches!(never.look(later, 3), Due::In(_)));
    }

    #[cfg(feature = "cron")]
    mod cron {
        use super::*;

        fn every_five_seconds() -> (Now, Ticks) {
            let schedule = Schedule::cron("*/5 * * * * *").unwrap();
            (start(), Ticks::new(&schedule, start()))
        }

        #[test]
        fn each_tick_comes_once_with_its_time() {
            let (start, mut ticks) = every_five_seconds();
            assert_eq!(ticks.look(start, 9), Due::In(5 * SECOND));
            let now = after(start, 5 * SECOND);
            assert_eq!(ticks.look(now, 9), Due::Now(vec![Some(now.wall)]));
            assert_eq!(ticks.look(now, 9), Due::In(5 * SECOND));
            let late = after(start, 17 * SECOND);
            let expected = [10, 15].map(|s| Some(start.wall + s * SECOND));
            assert_eq!(ticks.look(late, 9), Due::Now(expected.to_vec()));
        }

        #[test]
        fn a_clock_set_forward_by_years_costs_no_more_than_was_asked_for() {
            let (start, mut ticks) = every_five_seconds();
            let now = after(start, 100_000_000 * SECOND);
            let Due::Now(due) = ticks.look(now, 2) else {
                panic!("nothing is due")
            };
            assert_eq!(due, [Some(now.wall - 5 * SECOND), Some(now.wall)]);
        }

        #[test]
        fn a_clock_set_back_does_not_stop_the_job_and_a_small_step_repeats_no_tick() {
            let (start, mut ticks) = every_five_seconds();
            let now = after(start, 5 * SECOND);
            assert!(matches!(ticks.look(now, 1), Due::Now(_)));
            let stepped = Now {
                wall: now.wall - 2 * SECOND,
                ..now
            };
            assert_eq!(ticks.look(stepped, 1), Due::In(7 * SECOND));
            let set_back = Now {
                wall: now.wall - 3_600 * SECOND,
                ..now
            };
            assert_eq!(ticks.look(set_back, 1), Due::In(5 * SECOND));
        }

        #[test]
        fn a_far_tick_is_waited_for_in_short_sleeps() {
            let schedule = Schedule::cron("0 0 0 1 1 *").unwrap();
            let mut ticks = Ticks::new(&schedule, start());
            assert_eq!(ticks.look(start(), 1), Due::In(LOOK_AGAIN));
        }
    }
}
