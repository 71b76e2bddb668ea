//! The state machine of one circuit: no lock, no clock of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Breaker, Verdict};
use crate::keyed_map::Entry;

/// The state of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CircuitState {
    /// Calls pass.
    Closed,
    /// Calls fail unattempted.
    Open,
    /// Probes pass.
    HalfOpen,
}

pub(super) struct Circuit {
    state: State,
    /// New at each change of state, and no two circuits share one: a call that began before a
    /// change says nothing about what came after.
    era: u64,
    touched: Instant,
    window: Duration,
    /// How often in a row it opened without closing.
    opened: u32,
}

enum State {
    Closed { outcomes: Outcomes },
    Open { until: Instant },
    HalfOpen { probing: u32, succeeded: u32 },
}

/// The last outcomes, newest in the lowest bit; a one is a failure.
#[derive(Default, Clone, Copy)]
pub(super) struct Outcomes {
    bits: u64,
    count: u32,
}

/// Leave to make one call.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    era: u64,
    pub(super) began: Instant,
}

/// Longer than any process runs.
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

static ERA: AtomicU64 = AtomicU64::new(0);

impl Circuit {
    pub(super) fn new(config: &Breaker, now: Instant) -> Self {
        Self {
            state: State::Closed {
                outcomes: Outcomes::default(),
            },
            era: next_era(),
            touched: now,
            window: config.window,
            opened: 0,
        }
    }

    /// Leave to call, or how long to wait for it.
    pub(super) fn admit(&mut self, config: &Breaker, now: Instant) -> Result<Pass, Duration> {
        if let State::Open { until } = self.state {
            if now < until {
                return Err(until - now);
            }
            self.enter(State::HalfOpen {
                probing: 0,
                succeeded: 0,
            });
        }
        if let State::HalfOpen { probing, .. } = &mut self.state {
            if *probing >= config.probes {
                return Err(config.open_for.min(Duration::from_secs(1)));
            }
            *probing += 1;
        }
        let stale = now.saturating_duration_since(self.touched) > config.window;
        if let State::Closed { outcomes } = &mut self.state
            && stale
        {
            *outcomes = Outcomes::default();
        }
        self.touched = now;
        Ok(Pass {
            era: self.era,
            began: now,
        })
    }

    /// Counts the outcome of a call.
    pub(super) fn finish(&mut self, pass: Pass, verdict: Verdict, config: &Breaker, now: Instant) {
        if pass.era != self.era {
            return;
        }
        self.touched = now;
        match &mut self.state {
            State::Closed { outcomes } => {
                outcomes.count_in(verdict);
                if outcomes.are_too_bad(config) {
                    self.open(config, now);
                }
            }
            State::HalfOpen { probing, succeeded } => {
                *probing = probing.saturating_sub(1);
                match verdict {
                    Verdict::Failure => self.open(config, now),
                    Verdict::Neutral => {}
                    Verdict::Success => {
                        *succeeded += 1;
                        if *succeeded >= config.successes {
                            self.close();
                        }
                    }
                }
            }
            State::Open { .. } => {}
        }
    }

    pub(super) fn close(&mut self) {
        self.opened = 0;
        self.enter(State::Closed {
            outcomes: Outcomes::default(),
        });
    }

    /// Opens for this long; for ten years where that is more than the clock can tell.
    pub(super) fn open_for(&mut self, period: Duration, now: Instant) {
        let until = now.checked_add(period).unwrap_or_else(|| now + TEN_YEARS);
        self.enter(State::Open { until });
    }

    fn open(&mut self, config: &Breaker, now: Instant) {
        let factor = 1_u32.checked_shl(self.opened).unwrap_or(u32::MAX);
        let period = config.open_for.saturating_mul(factor).min(config.max_open);
        self.opened = self.opened.saturating_add(1);
        self.open_for(period, now);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.era = next_era();
    }

    pub(super) const fn state(&self) -> CircuitState {
        match self.state {
            State::Closed { .. } => CircuitState::Closed,
            State::Open { .. } => CircuitState::Open,
            State::HalfOpen { .. } => CircuitState::HalfOpen,
        }
    }

    pub(super) fn retry_after(&self, now: Instant) -> Option<Duration> {
        match self.state {
            State::Open { until } => Some(until.saturating_duration_since(now)),
            _ => None,
        }
    }

    pub(super) const fn outcomes(&self) -> Outcomes {
        match self.state {
            State::Closed { outcomes } => outcomes,
            _ => Outcomes { bits: 0, count: 0 },
        }
    }
}

impl Entry for Circuit {
    fn is_idle(&self, now: Instant) -> bool {
        let forgotten = |since: Instant| now.saturating_duration_since(since) > self.window;
        match self.state {
            State::Closed { .. } => forgotten(self.touched),
            State::Open { until } => forgotten(until),
            State::HalfOpen { probing, .. } => probing == 0 && forgotten(self.touched),
        }
    }
}

impl Outcomes {
    const fn count_in(&mut self, verdict: Verdict) {
        let bit = match verdict {
            Verdict::Success => 0,
            Verdict::Failure => 1,
            Verdict::Neutral => return,
        };
        self.bits = self.bits << 1 | bit;
        if self.count < 64 {
            self.count += 1;
        }
    }

    fn are_too_bad(self, config: &Breaker) -> bool {
        let row = (!self.bits).trailing_zeros();
        if row >= config.consecutive.min(64) && self.count >= config.consecutive.min(64) {
            return true;
        }
        let failed = self.failed_of(config.calls);
        self.count >= config.calls && f64::from(failed) >= config.rate * f64::from(config.calls)
    }

    /// How many of the last `calls` failed.
    const fn failed_of(self, calls: u32) -> u32 {
        let mask = if calls >= 64 {
            u64::MAX
        } else {
            (1 << calls) - 1
        };
        (self.bits & mask).count_ones()
    }

    /// Failures and calls in the window.
    pub(super) fn counts(self, calls: u32) -> (u32, u32) {
        (self.failed_of(calls), self.count.min(calls))
    }
}

fn next_era() -> u64 {
    ERA.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Failure, Neutral, Success};

    const SECOND: Duration = Duration::from_secs(1);

    fn run(circuit: &mut Circuit, config: &Breaker, now: Instant, verdicts: &[Verdict]) {
        for verdict in verdicts {
            let pass = circuit.admit(config, now).unwrap();
            circuit.finish(pass, *verdict, config, now);
        }
    }

    #[test]
    fn opens_after_failures_in_a_row_and_not_before() {
        let (config, now) = (Breaker::default().consecutive(3), Instant::now());
        let mut circuit = Circuit::new(&config, now);
        run(
            &mut circuit,
            &config,
            now,
            &[Failure, Failure, Success, Failure, Neutral, Failure],
        );
        assert_eq!(circuit.state(), CircuitState::Closed);
        run(&mut circuit, &config, now, &[Failure]);
        assert_eq!(circuit.state(), CircuitState::Open);
        assert_eq!(circuit.admit(&config, now).err(), Some(10 * SECOND));
    }

    #[test]
    fn opens_at_the_failure_rate_once_enough_calls_were_seen() {
        let config = Breaker::default().consecutive(64).failure_rate(0.5, 4);
        let now = Instant::now();
        let mut circuit = Circuit::new(&config, now);
        run(&mut circuit, &config, now, &[Failure, Success, Failure]);
        assert_eq!(circuit.state(), CircuitState::Closed);
        run(&mut circuit, &config, now, &[Success]);
        assert_eq!(circuit.state(), CircuitState::Open);
    }

    #[test]
    fn stays_open_twice_as_long_after_each_failed_probe_up_to_the_most() {
        let config = Breaker::default()
            .consecutive(1)
            .open_for(SECOND)
            .max_open(3 * SECOND);
        let mut now = Instant::now();
        let mut circuit = Circuit::new(&config, now);
        for period in [1, 2, 3, 3] {
            run(&mut circuit, &config, now, &[Failure]);
            assert_eq!(circuit.retry_after(now), Some(period * SECOND));
            now += period * SECOND;
        }
        run(&mut circuit, &config, now, &[Success]);
        assert_eq!(circuit.state(), CircuitState::Closed);
        run(&mut circuit, &config, now, &[Failure]);
        assert_eq!(circuit.retry_after(now), Some(SECOND));
    }

    #[test]
    fn lets_no_more_probes_through_than_set_and_takes_back_those_that_say_nothing() {
        let config = Breaker::default().consecutive(1).probes(2).successes(2);
        let now = Instant::now();
        let mut circuit = Circuit::new(&config, now);
        run(&mut circuit, &config, now, &[Failure]);
        let later = now + 10 * SECOND;
        let first = circuit.admit(&config, later).unwrap();
        let second = circuit.admit(&config, later).unwrap();
        assert!(circuit.admit(&config, later).is_err());
        circuit.finish(first, Neutral, &config, later);
        let third = circuit.admit(&config, later).unwrap();
        circuit.finish(second, Success, &config, later);
        assert_eq!(circuit.state(), CircuitState::HalfOpen);
        circuit.finish(third, Success, &config, later);
        assert_eq!(circuit.state(), CircuitState::Closed);
    }

    #[test]
    fn ignores_calls_that_began_before_it_opened() {
        let config = Breaker::default().consecutive(1);
        let now = Instant::now();
        let mut circuit = Circuit::new(&config, now);
        let slow = circuit.admit(&config, now).unwrap();
        run(&mut circuit, &config, now, &[Failure]);
        circuit.finish(slow, Success, &config, now);
        assert_eq!(circuit.state(), CircuitState::Open);
        let later = now + 10 * SECOND;
        let probe = circuit.admit(&config, later).unwrap();
        circuit.finish(slow, Failure, &config, later);
        assert_eq!(circuit.state(), CircuitState::HalfOpen);
        circuit.finish(probe, Success, &config, later);
        assert_eq!(circuit.state(), CircuitState::Closed);
    }

    #[test]
    fn forgets_outcomes_older_than_the_window() {
        let (config, now) = (Breaker::default().consecutive(2), Instant::now());
        let mut circuit = Circuit::new(&config, now);
        run(&mut circuit, &config, now, &[Failure]);
        run(&mut circuit, &config, now + 61 * SECOND, &[Failure]);
        assert_eq!(circuit.state(), CircuitState::Closed);
        assert!(!circuit.is_idle(now + 61 * SECOND));
        assert!(circuit.is_idle(now + 200 * SECOND));
    }
}
