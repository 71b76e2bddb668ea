//! All circuits of a layer, to call through, to look at and to reset.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower::BoxError;

use super::circuit::{Circuit, Pass};
use super::{Breaker, CircuitOpen, CircuitState, Judge, Verdict};
use crate::keyed_map::KeyedMap;

/// The circuits of a [`CircuitBreakerLayer`](super::CircuitBreakerLayer). Cheap to clone; clones
/// share them.
#[derive(Clone)]
pub struct Circuits {
    shared: Arc<Shared>,
}

struct Shared {
    config: Breaker,
    circuits: KeyedMap<Circuit>,
    on_change: Option<OnChange>,
}

type OnChange = Box<dyn Fn(&str, CircuitState) + Send + Sync>;

/// What a circuit looks like now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitStatus {
    /// Its key.
    pub key: String,
    /// Its state.
    pub state: CircuitState,
    /// Until the first probe, where it is open.
    pub retry_after: Option<Duration>,
    /// Failures among the last calls, where it is closed.
    pub failures: u32,
    /// The calls that these are of.
    pub calls: u32,
}

impl Circuits {
    pub(super) fn new(config: Breaker, on_change: Option<OnChange>) -> Self {
        Self {
            shared: Arc::new(Shared {
                config,
                circuits: KeyedMap::new(),
                on_change,
            }),
        }
    }

    /// The circuits that are known now, by key. Closed ones that saw no call lately may be missing.
    #[must_use]
    pub fn list(&self) -> Vec<CircuitStatus> {
        let mut all = self
            .shared
            .circuits
            .collect(|key, circuit| Some(self.status(key, circuit)));
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// The state of one key's circuit; closed where none is known.
    #[must_use]
    pub fn state(&self, key: &str) -> CircuitState {
        self.shared
            .circuits
            .with_existing(key, |circuit| circuit.state())
            .unwrap_or(CircuitState::Closed)
    }

    /// How many circuits are open or half-open.
    #[must_use]
    pub fn tripped(&self) -> usize {
        let not_closed =
            |_: &str, circuit: &Circuit| (circuit.state() != CircuitState::Closed).then_some(());
        self.shared.circuits.collect(not_closed).len()
    }

    /// How many keys have state.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.shared.circuits.len()
    }

    /// Closes a circuit by hand and forgets its outcomes; false where none is known.
    pub fn reset(&self, key: &str) -> bool {
        let before = self.shared.circuits.with_existing(key, |circuit| {
            let before = circuit.state();
            circuit.close();
            before
        });
        if let Some(before) = before {
            self.tell(key, before, CircuitState::Closed);
        }
        before.is_some()
    }

    /// Opens a circuit by hand.
    pub fn open(&self, key: &str, period: Duration) {
        let now = self.shared.config.clock.now();
        let make = || Circuit::new(&self.shared.config, now);
        let before = self.shared.circuits.with(key, now, make, |_, circuit| {
            let before = circuit.state();
            circuit.open_for(period, now);
            before
        });
        self.tell(key, before, CircuitState::Open);
    }

    pub(super) fn admit(&self, key: &str) -> Result<Permit, CircuitOpen> {
        let config = &self.shared.config;
        let now = config.clock.now();
        let make = || Circuit::new(config, now);
        let (before, after, admitted) =
            self.shared.circuits.with(key, now, make, |key, circuit| {
                let before = circuit.state();
                let admitted = circuit
                    .admit(config, now)
                    .map(|pass| (pass, Arc::clone(key)));
                (before, circuit.state(), admitted)
            });
        self.tell(key, before, after);
        let (pass, key) = admitted.map_err(CircuitOpen::new)?;
        Ok(Permit {
            circuits: self.clone(),
            key,
            pass: Some(pass),
            slow: config.slow,
        })
    }

    fn finish(&self, key: &str, pass: Pass, verdict: Verdict) {
        let config = &self.shared.config;
        let now = config.clock.now();
        let change = self.shared.circuits.with_existing(key, |circuit| {
            let before = circuit.state();
            circuit.finish(pass, verdict, config, now);
            (before, circuit.state())
        });
        if let Some((before, after)) = change {
            self.tell(key, before, after);
        }
    }

    fn tell(&self, key: &str, before: CircuitState, after: CircuitState) {
        if before != after
            && let Some(on_change) = &self.shared.on_change
        {
            on_change(key, after);
        }
    }

    fn status(&self, key: &str, circuit: &Circuit) -> CircuitStatus {
        let config = &self.shared.config;
        let (failures, calls) = circuit.outcomes().counts(config.calls);
        CircuitStatus {
            key: key.to_owned(),
            state: circuit.state(),
            retry_after: circuit.retry_after(config.clock.now()),
            failures,
            calls,
        }
    }
}

impl fmt::Debug for Circuits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Circuits")
            .field("keys", &self.keys())
            .finish_non_exhaustive()
    }
}

/// Leave to make one call. Dropping it unfinished gives a probe's place back; where the call had
/// taken long, it counts as failed.
pub(super) struct Permit {
    circuits: Circuits,
    key: Arc<str>,
    pass: Option<Pass>,
    slow: Option<Duration>,
}

impl Permit {
    /// Where nothing else is set: a call dropped after three quarters of `timeout` has failed.
    pub(super) fn within(&mut self, timeout: Duration) {
        self.slow.get_or_insert(timeout / 4 * 3);
    }

    pub(super) fn finish(mut self, verdict: Verdict) {
        if let Some(pass) = self.pass.take() {
            self.circuits.finish(&self.key, pass, verdict);
        }
    }
}

/// Leave to call through a circuit, and who judges what came of the call.
pub struct Judged<J> {
    permit: Permit,
    judge: J,
}

impl<J> Judged<J> {
    pub(super) const fn new(permit: Permit, judge: J) -> Self {
        Self { permit, judge }
    }
}

impl<T, J: Judge<T>> crate::Pass<T> for Judged<J> {
    fn ended(self, outcome: Result<&T, &BoxError>) {
        let verdict = self.judge.judge(outcome);
        self.permit.finish(verdict);
    }
}

impl<J> fmt::Debug for Judged<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judged").finish_non_exhaustive()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(pass) = self.pass.take() else { return };
        let now = self.circuits.shared.config.clock.now();
        let took = now.saturating_duration_since(pass.began);
        let verdict = match self.slow {
            Some(slow) if took >= slow => Verdict::Failure,
            _ => Verdict::Neutral,
        };
        self.circuits.finish(&self.key, pass, verdict);
    }
}
