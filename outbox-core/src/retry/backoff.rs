//! Exponential backoff with a cap and jitter.

use std::time::Duration;

use super::{FailedAttempt, RetryDecision, RetryPolicy};
use crate::{DeathReason, DeliveryError, Error, Event, EventId};

/// How delays are spread, so that events which failed together do not come back together.
///
/// The names are those of Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Jitter {
    /// Between zero and the whole delay.
    Full,
    /// Between half of the delay and the whole.
    #[default]
    Equal,
    /// The delay as computed.
    None,
}

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
    jitter: Jitter,
    max_attempts: u32,
    max_age: Option<Duration>,
    retry_after_cap: Duration,
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
            jitter: Jitter::Equal,
            max_attempts: 15,
            max_age: None,
            retry_after_cap: Duration::from_secs(24 * 60 * 60),
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

    /// How delays are spread.
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The most attempts; an event's own limit goes first. At least 1.
    pub const fn max_attempts(mut self, limit: u32) -> Self {
        self.max_attempts = limit;
        self
    }

    /// Gives up where the next attempt would come later than this after the enqueue.
    pub const fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// The longest `Retry-After` that is obeyed; a longer one counts as this long.
    pub const fn retry_after_cap(mut self, cap: Duration) -> Self {
        self.retry_after_cap = cap;
        self
    }

    fn delay(&self, id: EventId, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(64);
        let factor = 1u128 << doublings;
        let whole = self
            .base
            .as_micros()
            .saturating_mul(factor)
            .min(self.cap.as_micros());
        let whole = u64::try_from(whole).unwrap_or(u64::MAX);
        let spread = |range: u64| scale(range, fraction(id, attempt));
        Duration::from_micros(match self.jitter {
            Jitter::None => whole,
            Jitter::Equal => whole - whole / 2 + spread(whole / 2),
            Jitter::Full => spread(whole),
        })
    }

    fn floor(&self, id: EventId, attempt: u32, asked: Duration) -> Duration {
        let asked = asked.min(self.retry_after_cap);
        if self.jitter == Jitter::None {
            return asked;
        }
        // Upward only, by at most a tenth: never sooner than asked.
        let tenth = u64::try_from(asked.as_micros() / 10).unwrap_or(u64::MAX);
        asked.saturating_add(Duration::from_micros(scale(tenth, fraction(id, attempt))))
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

    fn decide(&self, attempt: &FailedAttempt, error: &DeliveryError) -> RetryDecision {
        let (id, number) = (attempt.event.id, attempt.event.attempts);
        let delay = self.delay(id, number);
        let after = error
            .retry_after()
            .map_or(delay, |asked| self.floor(id, number, asked).max(delay));
        match self.max_age {
            Some(limit) if attempt.age.saturating_add(after) > limit => {
                RetryDecision::GiveUp(DeathReason::TooOld)
            }
            _ => RetryDecision::After(after),
        }
    }
}

/// 64 well-mixed bits from the event and the attempt (the finaliser of SplitMix64: Steele, Lea and
/// Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
fn fraction(id: EventId, attempt: u32) -> u64 {
    let (high, low) = id.as_bytes().split_at(8);
    let word = |half: &[u8]| {
        half.iter()
            .fold(0u64, |word, byte| word << 8 | u64::from(*byte))
    };
    let mut z = word(high) ^ word(low).rotate_left(32);
    z = z.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `range × fraction / 2^64`: evenly spread over `0..range`.
fn scale(range: u64, fraction: u64) -> u64 {
    u64::try_from((u128::from(range) * u128::from(fraction)) >> 64).unwrap_or(range)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn failed(attempts: u32, age: Duration) -> FailedAttempt {
        let mut event = Event::new(EventId::new(), 1, "T", "d", "");
        event.attempts = attempts;
        FailedAttempt::new(Arc::new(event), age)
    }

    fn after(policy: &Backoff, attempts: u32, error: &DeliveryError) -> Duration {
        match policy.decide(&failed(attempts, Duration::ZERO), error) {
            RetryDecision::After(delay) => delay,
            RetryDecision::GiveUp(reason) => panic!("gave up: {reason}"),
        }
    }

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
            asked in proptest::option::of(any::<u64>()), jitter in 0..3usize,
        ) {
            let jitter = [Jitter::None, Jitter::Equal, Jitter::Full][jitter];
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
