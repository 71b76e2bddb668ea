use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::Timer;

use crate::clock::Clock;

/// When a circuit opens and closes.
#[derive(Clone)]
pub struct Breaker {
    pub(super) consecutive: u32,
    pub(super) rate: f64,
    pub(super) calls: u32,
    pub(super) window: Duration,
    pub(super) open_for: Duration,
    pub(super) max_open: Duration,
    pub(super) probes: u32,
    pub(super) successes: u32,
    pub(super) slow: Option<Duration>,
    pub(super) clock: Clock,
}

impl Default for Breaker {
    /// Opens after 5 failures in a row, or half of the last 20 calls; for 10 s, doubling up to 5
    /// minutes; closes after one successful probe.
    fn default() -> Self {
        Self {
            consecutive: 5,
            rate: 0.5,
            calls: 20,
            window: Duration::from_secs(60),
            open_for: Duration::from_secs(10),
            max_open: Duration::from_secs(300),
            probes: 1,
            successes: 1,
            slow: None,
            clock: Clock::System,
        }
    }
}

impl Breaker {
    /// Opens after this many failures in a row; at least 1. Default: 5.
    #[must_use]
    pub const fn consecutive(mut self, failures: u32) -> Self {
        self.consecutive = if failures == 0 { 1 } else { failures };
        self
    }

    /// Opens where this share of the last `calls` calls failed (1 to 64 calls, all of them within
    /// [`window`](Self::window) of each other). A rate above 1 turns it off. Default: 0.5 of 20.
    #[must_use]
    pub fn failure_rate(mut self, rate: f64, calls: u32) -> Self {
        self.rate = if rate.is_nan() { 2.0 } else { rate.max(0.01) };
        self.calls = calls.clamp(1, 64);
        self
    }

    /// Outcomes are forgotten when none came for this long. Default: one minute.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// How long it stays open at first; each failed probe doubles it. Default: 10 s.
    #[must_use]
    pub const fn open_for(mut self, period: Duration) -> Self {
        self.open_for = period;
        self
    }

    /// The longest that it stays open without a probe. Default: 5 minutes.
    #[must_use]
    pub const fn max_open(mut self, period: Duration) -> Self {
        self.max_open = period;
        self
    }

    /// The most probes at once while half-open; at least 1. Default: 1.
    #[must_use]
    pub const fn probes(mut self, probes: u32) -> Self {
        self.probes = if probes == 0 { 1 } else { probes };
        self
    }

    /// Successful probes that close it; at least 1. Default: 1.
    #[must_use]
    pub const fn successes(mut self, successes: u32) -> Self {
        self.successes = if successes == 0 { 1 } else { successes };
        self
    }

    /// A call that is dropped unfinished after this long counts as failed. Default: three quarters
    /// of the delivery's time-out; for requests that know none, never.
    #[must_use]
    pub const fn slow(mut self, slow: Duration) -> Self {
        self.slow = Some(slow);
        self
    }

    /// The clock. Default: the system's.
    #[must_use]
    pub fn timer(mut self, timer: impl Timer + 'static) -> Self {
        self.clock = Clock::Timer(Arc::new(timer));
        self
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("consecutive", &self.consecutive)
            .field("rate", &self.rate)
            .field("calls", &self.calls)
            .field("open_for", &self.open_for)
            .finish_non_exhaustive()
    }
}
