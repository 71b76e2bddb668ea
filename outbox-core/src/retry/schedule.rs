//! Waits that are listed one by one.

use std::time::Duration;

use super::delays::{self, Delays, Jitter};
use super::{FailedAttempt, RetryDecision, RetryPolicy};
use crate::{DeliveryError, Error, Event};

/// A wait for each retry: after attempt `n` the `n`-th, and after the attempt that follows the last
/// wait the event is dead. The first attempt is made at once and needs no entry.
///
/// Defaults: no jitter, no limit of age, a receiver's `Retry-After` obeyed up to 24 h. An event
/// whose own `max_attempts` is greater than the schedule is long repeats the last wait.
///
/// ```
/// use std::time::Duration;
/// use outbox_core::{FixedSchedule, RetryRoutes};
///
/// let minutes = |n: u64| Duration::from_secs(60 * n);
/// let policy = RetryRoutes::new(FixedSchedule::standard_webhooks())
///     .event_type("Heartbeat", FixedSchedule::new([minutes(1), minutes(5)])); // three attempts
/// # let _ = policy;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct FixedSchedule {
    waits: Vec<Duration>,
    delays: Delays,
}

impl FixedSchedule {
    /// These waits, in this order.
    pub fn new(waits: impl IntoIterator<Item = Duration>) -> Self {
        Self {
            waits: waits.into_iter().collect(),
            delays: Delays::new(Jitter::None),
        }
    }

    /// The example schedule of the Standard Webhooks specification 1.0.0 ("Deliverability and
    /// reliability", <https://www.standardwebhooks.com>): at once, then after 5 s, 5 min, 30 min,
    /// 2 h, 5 h, 10 h, 14 h, 20 h and 24 h. These are 10 attempts in 75 h 35 min 5 s, apart from what
    /// the attempts take.
    ///
    /// The specification also asks for some jitter: [`Jitter::Tenth`], which makes no wait longer.
    pub fn standard_webhooks() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        let waits = [
            5,
            5 * MINUTE,
            30 * MINUTE,
            2 * HOUR,
            5 * HOUR,
            10 * HOUR,
            14 * HOUR,
            20 * HOUR,
            24 * HOUR,
        ];
        Self::new(waits.map(Duration::from_secs)).jitter(Jitter::Tenth)
    }

    delays::setters!();
}

impl RetryPolicy for FixedSchedule {
    fn validate(&self) -> Result<(), Error> {
        if self.waits.is_empty() {
            return Err(Error::invalid_config(
                "waits",
                "is empty; give one wait for each retry (for none: `Backoff` with `max_attempts(1)`)",
            ));
        }
        if let Some(index) = self.waits.iter().position(Duration::is_zero) {
            let problem = format!(
                "has 0 s as number {}; use more (the first attempt is made at once and has no wait)",
                index + 1
            );
            return Err(Error::invalid_config("waits", problem));
        }
        Ok(())
    }

    fn max_attempts(&self, _: &Event) -> u32 {
        u32::try_from(self.waits.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }

    fn retry_after_cap(&self, _: &Event) -> Duration {
        self.delays.retry_after_cap
    }

    fn decide(&self, attempt: &FailedAttempt, error: &DeliveryError) -> RetryDecision {
        let number = usize::try_from(attempt.event.attempts).unwrap_or(usize::MAX);
        let wait = self.waits.get(number.saturating_sub(1));
        // Beyond the end only where the event's own limit goes first. No wait at all is refused by
        // `validate`.
        let wait = wait.or(self.waits.last()).copied();
        self.delays
            .decide(wait.unwrap_or(Duration::from_secs(1)), attempt, error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::delays::tests::{after, failed};
    use super::*;
    use crate::DeathReason;

    const SECOND: Duration = Duration::from_secs(1);

    fn transient() -> DeliveryError {
        DeliveryError::transient("503")
    }

    #[test]
    fn waits_come_in_their_order_and_the_last_one_is_repeated_for_an_event_with_a_limit_of_its_own()
    {
        let policy = FixedSchedule::new([3 * SECOND, SECOND, 7 * SECOND]);
        let seconds = [1, 2, 3, 4, u32::MAX].map(|n| after(&policy, n, &transient()).as_secs());
        assert_eq!(seconds, [3, 1, 7, 7, 7]);
        assert_eq!(policy.max_attempts(&failed(1, SECOND).event), 4);
    }

    #[test]
    fn the_standard_webhooks_schedule_is_that_of_the_specification() {
        let policy = FixedSchedule::standard_webhooks().jitter(Jitter::None);
        let attempts = policy.max_attempts(&failed(1, SECOND).event);
        assert_eq!(attempts, 10);
        let mut since_start = Duration::ZERO;
        let column = (1..attempts).map(|n| {
            since_start += after(&policy, n, &transient());
            let s = since_start.as_secs();
            format!("{:02}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
        });
        // "Time since start" in the specification's table.
        assert_eq!(
            column.collect::<Vec<_>>(),
            [
                "00:00:05", "00:05:05", "00:35:05", "02:35:05", "07:35:05", "17:35:05", "31:35:05",
                "51:35:05", "75:35:05",
            ]
        );
    }

    #[test]
    fn the_standard_webhooks_schedule_has_jitter_that_makes_no_wait_longer() {
        let policy = FixedSchedule::standard_webhooks();
        let waits: Vec<_> = (0..100).map(|_| after(&policy, 2, &transient())).collect();
        assert!(
            waits
                .iter()
                .all(|wait| (270 * SECOND..=300 * SECOND).contains(wait))
        );
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }

    #[test]
    fn retry_after_is_a_floor_up_to_its_cap_and_age_ends_it() {
        let policy = FixedSchedule::new([10 * SECOND])
            .retry_after_cap(60 * SECOND)
            .max_age(100 * SECOND);
        let asked = |seconds| transient().with_retry_after(Duration::from_secs(seconds));
        assert_eq!(after(&policy, 1, &asked(5)), 10 * SECOND);
        assert_eq!(after(&policy, 1, &asked(30)), 30 * SECOND);
        assert_eq!(after(&policy, 1, &asked(u64::MAX)), 60 * SECOND);
        let old = policy.decide(&failed(1, 91 * SECOND), &transient());
        assert_eq!(old, RetryDecision::GiveUp(DeathReason::TooOld));
    }

    #[test]
    fn refuses_a_schedule_with_no_wait_or_a_wait_of_nothing() {
        let refused = |policy: FixedSchedule| policy.validate().unwrap_err().to_string();
        assert!(refused(FixedSchedule::new([])).contains("`waits` is empty"));
        let zero = refused(FixedSchedule::new([SECOND, Duration::ZERO]));
        assert!(zero.contains("`waits` has 0 s as number 2"), "{zero}");
        FixedSchedule::standard_webhooks().validate().unwrap();
    }

    proptest! {
        #[test]
        fn any_input_gives_a_delay_within_its_bounds(
            waits in proptest::collection::vec((any::<u64>(), 0..1_000_000_000u32), 0..5),
            attempts in any::<u32>(), age in any::<u64>(), limit in any::<Option<u64>>(),
            asked in any::<Option<u64>>(), cap in any::<u64>(), jitter in 0..4usize,
        ) {
            let jitter = [Jitter::None, Jitter::Tenth, Jitter::Equal, Jitter::Full][jitter];
            let waits: Vec<_> = waits.into_iter().map(|(s, n)| Duration::new(s, n)).collect();
            let longest = waits.iter().max().copied().unwrap_or(SECOND);
            let cap = Duration::from_secs(cap);
            let mut policy = FixedSchedule::new(waits).jitter(jitter).retry_after_cap(cap);
            if let Some(limit) = limit {
                policy = policy.max_age(Duration::from_secs(limit));
            }
            let mut error = transient();
            if let Some(asked) = asked {
                error = error.with_retry_after(Duration::from_secs(asked));
            }
            let floor = error.retry_after().unwrap_or_default().min(cap);
            match policy.decide(&failed(attempts, Duration::from_secs(age)), &error) {
                RetryDecision::After(delay) => {
                    prop_assert!(delay >= floor);
                    let most = floor.saturating_add(floor / 10).saturating_add(SECOND);
                    prop_assert!(delay <= longest.max(most));
                }
                RetryDecision::GiveUp(reason) => {
                    prop_assert_eq!(reason, DeathReason::TooOld);
                    prop_assert!(limit.is_some());
                }
            }
        }
    }
}
