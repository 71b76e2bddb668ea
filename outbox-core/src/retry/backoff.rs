//! Exponential backoff with a cap and jitter.

use std::time::Duration;

use super::delays::{self, Delays, Jitter};
use super::{FailedAttempt, RetryDecision, RetryPolicy};
use crate::{DeliveryError, Error, Event};

/// Exponential backoff: after attempt `n` the delay is `base × 2^(n−1)`, at most `cap`, with jitter.
///
/// Defaults: base 1 s, cap 1 h, equal jitter, 15 attempts (about 6 hours with the jitter), no limit of age, a
/// receiver's `Retry-After` obeyed up to 24 h.
///
/// The jitter is drawn from the event's id and the attempt, so that the policy stays a pure
/// function.
///
/// ```
/// use std::time::Duration;
/// use outbox_core::Backoff;
///
/// let policy = Backoff::exponential().base(Duration::from_secs(1)).max_attempts(5);
/// # let _ = policy;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    max_attempts: u32,
    delays: Delays,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::exponential()
    }
}

impl Backoff {
    /// The defaults above.
    pub const fn exponential() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60 * 60),
            max_attempts: 15,
            delays: Delays::new(Jitter::Equal),
        }
    }

    /// The delay after the first attempt.
    pub const fn base(mut self, base: Duration) -> Self {
        self.base = base;
        self
    }

    /// The longest delay.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// The most attempts; an event's own limit goes first. At least 1.
    pub const fn max_attempts(mut self, limit: u32) -> Self {
        self.max_attempts = limit;
        self
    }

    delays::setters!();

    /// The delay after this attempt, before jitter.
    fn delay(&self, attempt: u32) -> Duration {
        let factor = 1u128 << attempt.saturating_sub(1).min(64);
        let whole = self.base.as_micros().saturating_mul(factor);
        let whole = whole.min(self.cap.as_micros());
        Duration::from_micros(u64::try_from(whole).unwrap_or(u64::MAX))
    }
}

impl RetryPolicy for Backoff {
    fn validate(&self) -> Result<(), Error> {
        if self.max_attempts == 0 {
            return Err(Error::invalid_config(
                "max_attempts",
                "is 0; it must be at least 1",
            ));
        }
        if self.base.is_zero() || self.cap < self.base {
            let problem = format!(
                "is {:?}; it must be above zero and at most the cap",
                self.base
            );
            return Err(Error::invalid_config("base", problem));
        }
        Ok(())
    }

    fn max_attempts(&self, _: &Event) -> u32 {
        self.max_attempts
    }

    fn retry_after_cap(&self, _: &Event) -> Duration {
        self.delays.retry_after_cap
    }

    fn decide(&self, attempt: &FailedAttempt, error: &DeliveryError) -> RetryDecision {
        let delay = self.delay(attempt.event.attempts);
        self.delays.decide(delay, attempt, error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::delays::tests::{after, failed};
    use super::*;
    use crate::DeathReason;

    #[test]
    fn doubles_from_the_base_to_the_cap() {
        let policy = Backoff::exponential()
            .jitter(Jitter::None)
            .cap(Duration::from_secs(60));
        let error = DeliveryError::transient("503");
        let seconds: Vec<_> = (1..=8)
            .map(|n| after(&policy, n, &error).as_secs())
            .collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn gives_up_where_the_next_attempt_would_be_too_old() {
        let policy = Backoff::exponential()
            .jitter(Jitter::None)
            .max_age(Duration::from_secs(10));
        let error = DeliveryError::transient("503");
        let at = |age| policy.decide(&failed(1, Duration::from_secs(age)), &error);
        assert_eq!(at(9), RetryDecision::After(Duration::from_secs(1)));
        assert_eq!(at(10), RetryDecision::GiveUp(DeathReason::TooOld));
    }

    #[test]
    fn refuses_settings_that_make_no_policy() {
        let refused = |policy: Backoff| policy.validate().unwrap_err().to_string();
        assert!(refused(Backoff::exponential().max_attempts(0)).contains("`max_attempts` is 0"));
        assert!(refused(Backoff::exponential().base(Duration::ZERO)).contains("`base` is 0ns"));
        Backoff::exponential().validate().unwrap();
    }

    proptest! {
        #[test]
        fn any_input_gives_a_delay_within_its_bounds(
            base in any::<u64>(), cap in any::<u64>(), attempts in any::<u32>(),
            asked in proptest::option::of(any::<u64>()), jitter in 0..4usize,
        ) {
            let jitter = [Jitter::None, Jitter::Tenth, Jitter::Equal, Jitter::Full][jitter];
            let policy = Backoff::exponential()
                .base(Duration::from_micros(base))
                .cap(Duration::from_micros(cap))
                .jitter(jitter);
            let mut error = DeliveryError::transient("503");
            if let Some(asked) = asked {
                error = error.with_retry_after(Duration::from_secs(asked));
            }
            let delay = after(&policy, attempts, &error);
            let floor = error.retry_after().unwrap_or_default().min(Duration::from_secs(86_400));
            prop_assert!(delay >= floor);
            prop_assert!(delay <= Duration::from_micros(cap).max(floor.mul_f64(1.11)));
        }
    }
}
