use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use outbox_core::{DeadLetters, Destinations, Maintenance, OutboxStore};

use super::{circuits, dead_letters, destinations, health, stats};
use crate::breaker::Circuits;

/// Builds the router of the [module](super) from the parts that there are.
#[derive(Clone)]
#[must_use]
pub struct Operations {
    pub(super) parts: Parts,
}

#[derive(Clone, Default)]
pub(super) struct Parts {
    pub(super) maintenance: Option<Arc<dyn Maintenance>>,
    pub(super) dead_letters: Option<Arc<dyn DeadLetters>>,
    pub(super) destinations: Option<Arc<dyn Destinations>>,
    pub(super) holds: Option<Arc<dyn OutboxStore>>,
    pub(super) circuits: Vec<(String, Circuits)>,
    pub(super) readiness: Vec<Arc<dyn Fn() -> bool + Send + Sync>>,
    pub(super) metrics: Vec<Arc<dyn Fn() -> String + Send + Sync>>,
    pub(super) count_limit: u32,
    pub(super) payloads: bool,
}

pub(super) type Shared = Arc<Parts>;

impl Operations {
    /// Health and readiness only.
    pub fn new() -> Self {
        Self {
            parts: Parts {
                count_limit: 10_000,
                ..Parts::default()
            },
        }
    }

    /// All that a store shows: stats, dead letters, destinations, blocked keys and holds.
    pub fn store<S>(self, store: S) -> Self
    where
        S: Maintenance + DeadLetters + Destinations + OutboxStore + Clone + 'static,
    {
        self.maintenance(store.clone())
            .dead_letters(store.clone())
            .destinations(store.clone())
            .holds(store)
    }

    /// `/stats`, and the store's part of `/metrics`.
    pub fn maintenance(mut self, store: impl Maintenance + 'static) -> Self {
        self.parts.maintenance = Some(Arc::new(store));
        self
    }

    /// `/dead-letters`.
    pub fn dead_letters(mut self, store: impl DeadLetters + 'static) -> Self {
        self.parts.dead_letters = Some(Arc::new(store));
        self
    }

    /// `/destinations` and `/blocked-keys`.
    pub fn destinations(mut self, store: impl Destinations + 'static) -> Self {
        self.parts.destinations = Some(Arc::new(store));
        self
    }

    /// `/destinations/hold` and `/destinations/free`.
    pub fn holds(mut self, store: impl OutboxStore + 'static) -> Self {
        self.parts.holds = Some(Arc::new(store));
        self
    }

    /// `/circuits` of one stack, under a name. Can be given several times.
    pub fn circuits(mut self, stack: impl Into<String>, circuits: Circuits) -> Self {
        self.parts.circuits.push((stack.into(), circuits));
        self
    }

    /// `/ready` asks this: a supervisor's `Readiness`, say. Where several are given, all must say yes;
    /// where none is, it is always ready.
    pub fn ready(mut self, ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.parts.readiness.push(Arc::new(ready));
        self
    }

    /// Adds this text to `/metrics`: an exporter's `render`, say.
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.parts.metrics.push(Arc::new(render));
        self
    }

    /// Where the store stops counting. Default: 10,000.
    pub const fn count_limit(mut self, limit: u32) -> Self {
        self.parts.count_limit = limit;
        self
    }

    /// Shows payloads and headers of single dead letters. Default: they are left out, since they may
    /// hold what operators must not see.
    pub const fn payloads(mut self) -> Self {
        self.parts.payloads = true;
        self
    }

    /// The router: a plain tower service that can be nested or served.
    pub fn router(self) -> Router {
        let parts = self.parts;
        let mut router = Router::new()
            .route("/health", get(health::health))
            .route("/ready", get(health::ready))
            .route("/metrics", get(stats::metrics));
        if parts.maintenance.is_some() {
            router = router.route("/stats", get(stats::stats));
        }
        if parts.dead_letters.is_some() {
            router = router
                .route("/dead-letters", get(dead_letters::list))
                .route("/dead-letters/{seq}", get(dead_letters::one))
                .route("/dead-letters/replay", post(dead_letters::replay))
                .route("/dead-letters/discard", post(dead_letters::discard));
        }
        if parts.destinations.is_some() {
            router = router
                .route("/destinations", get(destinations::list))
                .route("/blocked-keys", get(destinations::blocked_keys));
        }
        if parts.holds.is_some() {
            router = router
                .route("/destinations/hold", post(destinations::hold))
                .route("/destinations/free", post(destinations::free));
        }
        if !parts.circuits.is_empty() {
            router = router
                .route("/circuits", get(circuits::list))
                .route("/circuits/reset", post(circuits::reset));
        }
        router.with_state(Arc::new(parts))
    }
}

impl Default for Operations {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations").finish_non_exhaustive()
    }
}
