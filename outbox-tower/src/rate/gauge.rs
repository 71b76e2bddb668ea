//! A rate, and how much of it each key has used.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::clock::Clock;
use crate::keyed_map::{Entry, KeyedMap};

/// So many attempts in a time, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    quota: Quota,
}

impl Rate {
    /// `attempts` each second, evenly, with bursts of as many.
    #[must_use]
    pub const fn per_second(attempts: NonZeroU32) -> Self {
        Self {
            quota: Quota::per_second(attempts),
        }
    }

    /// `attempts` each minute, evenly, with bursts of as many.
    #[must_use]
    pub const fn per_minute(attempts: NonZeroU32) -> Self {
        Self {
            quota: Quota::per_minute(attempts),
        }
    }

    /// One attempt every `period` (1 ns to a year), with no bursts.
    #[must_use]
    pub fn every(period: Duration) -> Self {
        let year = Duration::from_secs(365 * 24 * 60 * 60);
        let period = period.clamp(Duration::from_nanos(1), year);
        Self {
            quota: Quota::with_period(period).unwrap_or(Quota::per_second(NonZeroU32::MIN)),
        }
    }

    /// At most this many at once, after a pause.
    #[must_use]
    pub const fn burst(self, attempts: NonZeroU32) -> Self {
        Self {
            quota: self.quota.allow_burst(attempts),
        }
    }
}

/// Time since the gauge was made.
#[derive(Clone)]
struct Elapsed {
    clock: Clock,
    start: Instant,
}

impl governor::clock::Clock for Elapsed {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.start)
    }
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, Elapsed, NoOpMiddleware<Duration>>;

struct Key {
    limiter: Limiter,
    full_again: Instant,
}

impl Entry for Key {
    fn is_idle(&self, now: Instant) -> bool {
        now >= self.full_again
    }
}

pub(super) struct Gauge {
    rate: Rate,
    clock: Elapsed,
    keys: KeyedMap<Key>,
}

impl Gauge {
    pub(super) fn new(rate: Rate, clock: Clock) -> Self {
        let start = clock.now();
        Self {
            rate,
            clock: Elapsed { clock, start },
            keys: KeyedMap::new(),
        }
    }

    /// Takes one attempt from the rate of `key`, or says how long to wait.
    pub(super) fn take(&self, key: &str) -> Result<(), Duration> {
        let now = self.clock.clock.now();
        let refill = self.rate.quota.burst_size_replenished_in();
        let make = || Key {
            limiter: RateLimiter::direct_with_clock(self.rate.quota, self.clock.clone()),
            full_again: now + refill,
        };
        self.keys.with(key, now, make, |_, state| {
            state.full_again = now + refill;
            state
                .limiter
                .check()
                .map_err(|limited| limited.wait_time_from(self.clock.now()))
        })
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }
}
