//! What policies share: jitter, the receiver's `Retry-After`, the limit of age.

use std::time::Duration;

use super::{FailedAttempt, RetryDecision};
use crate::{DeathReason, DeliveryError, EventId};

/// How delays are spread, so that events which failed together do not come back together.
///
/// The names of the first three are those of Brooker, "Exponential Backoff And Jitter" (AWS
/// Architecture Blog, 2015).
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
    /// Between nine tenths of the delay and the whole: for waits that were promised to somebody.
    Tenth,
}

/// The setters of a policy that has its [`Delays`] in `delays`.
macro_rules! setters {
    () => {
        /// How delays are spread.
        pub const fn jitter(mut self, jitter: Jitter) -> Self {
            self.delays.jitter = jitter;
            self
        }

        /// Gives up where the next attempt would come later than this after the enqueue.
        pub const fn max_age(mut self, age: Duration) -> Self {
            self.delays.max_age = Some(age);
            self
        }

        /// The longest `Retry-After` that is obeyed, by an event, by its destination where that is held
        /// for it, and where a limiter or a circuit asks for it; a longer one counts as this long.
        pub const fn retry_after_cap(mut self, cap: Duration) -> Self {
            self.delays.retry_after_cap = cap;
            self
        }
    };
}
pub(super) use setters;

/// How a policy's own delay becomes its decision.
#[derive(Debug, Clone)]
pub(super) struct Delays {
    pub(super) jitter: Jitter,
    pub(super) max_age: Option<Duration>,
    pub(super) retry_after_cap: Duration,
}

impl Delays {
    pub(super) const fn new(jitter: Jitter) -> Self {
        Self {
            jitter,
            max_age: None,
            retry_after_cap: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// After `whole`, with jitter, and no sooner than the receiver asked; never, where that is too
    /// late.
    pub(super) fn decide(
        &self,
        whole: Duration,
        attempt: &FailedAttempt,
        error: &DeliveryError,
    ) -> RetryDecision {
        let fraction = fraction(attempt.event.id, attempt.event.attempts);
        let delay = self.spread(whole, fraction);
        let after = error
            .retry_after()
            .map_or(delay, |asked| self.floor(asked, fraction).max(delay));
        match self.max_age {
            Some(limit) if attempt.age.saturating_add(after) > limit => {
                RetryDecision::GiveUp(DeathReason::TooOld)
            }
            _ => RetryDecision::After(after),
        }
    }

    fn spread(&self, whole: Duration, fraction: u64) -> Duration {
        let whole = micros(whole);
        let range = match self.jitter {
            Jitter::None => 0,
            Jitter::Tenth => whole / 10,
            Jitter::Equal => whole / 2,
            Jitter::Full => whole,
        };
        Duration::from_micros(whole - range + scale(range, fraction))
    }

    fn floor(&self, asked: Duration, fraction: u64) -> Duration {
        let asked = asked.min(self.retry_after_cap);
        if self.jitter == Jitter::None {
            return asked;
        }
        // Upward only, by at most a tenth: never sooner than asked.
        asked.saturating_add(Duration::from_micros(scale(micros(asked) / 10, fraction)))
    }
}

/// Whole microseconds, at most what 64 bits hold.
fn micros(period: Duration) -> u64 {
    u64::try_from(period.as_micros()).unwrap_or(u64::MAX)
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
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Event, RetryPolicy};

    /// Attempt number `attempts` at an event of this age has failed.
    pub(in crate::retry) fn failed(attempts: u32, age: Duration) -> FailedAttempt {
        let mut event = Event::new(EventId::new(), 1, "T", "d", "");
        event.attempts = attempts;
        FailedAttempt::new(Arc::new(event), age)
    }

    /// The delay that follows from this attempt at a new event.
    pub(in crate::retry) fn after(
        policy: &dyn RetryPolicy,
        attempts: u32,
        error: &DeliveryError,
    ) -> Duration {
        match policy.decide(&failed(attempts, Duration::ZERO), error) {
            RetryDecision::After(delay) => delay,
            RetryDecision::GiveUp(reason) => panic!("gave up: {reason}"),
        }
    }
}
