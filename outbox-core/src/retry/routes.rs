//! Policies for some event types or destinations.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::{FailedAttempt, RetryDecision, RetryPolicy};
use crate::{DeliveryError, Error, Event};

/// A policy for each event type or destination that is named, and one for the rest. Where both the
/// destination and the type of an event are named, its destination decides.
///
/// ```
/// use outbox_core::{Backoff, RetryRoutes};
///
/// let policy = RetryRoutes::new(Backoff::exponential())
///     .event_type("InvoiceSent", Backoff::exponential().max_attempts(20))
///     .destination("https://ci.example/hooks", Backoff::exponential().max_attempts(3));
/// ```
pub struct RetryRoutes {
    rest: Box<dyn RetryPolicy>,
    event_types: HashMap<String, Box<dyn RetryPolicy>>,
    destinations: HashMap<String, Box<dyn RetryPolicy>>,
}

impl RetryRoutes {
    /// This policy for every event, so far.
    #[must_use]
    pub fn new(rest: impl RetryPolicy + 'static) -> Self {
        Self {
            rest: Box::new(rest),
            event_types: HashMap::new(),
            destinations: HashMap::new(),
        }
    }

    /// This policy for events of this type; the last one that is named counts.
    #[must_use]
    pub fn event_type(
        mut self,
        name: impl Into<String>,
        policy: impl RetryPolicy + 'static,
    ) -> Self {
        self.event_types.insert(name.into(), Box::new(policy));
        self
    }

    /// This policy for events to this destination; the last one that is named counts.
    #[must_use]
    pub fn destination(
        mut self,
        name: impl Into<String>,
        policy: impl RetryPolicy + 'static,
    ) -> Self {
        self.destinations.insert(name.into(), Box::new(policy));
        self
    }

    fn of(&self, event: &Event) -> &dyn RetryPolicy {
        let named = self.destinations.get(&event.destination);
        let named = named.or_else(|| self.event_types.get(&event.event_type));
        &**named.unwrap_or(&self.rest)
    }
}

impl RetryPolicy for RetryRoutes {
    fn validate(&self) -> Result<(), Error> {
        let named = self.event_types.values().chain(self.destinations.values());
        std::iter::once(&self.rest)
            .chain(named)
            .try_for_each(|policy| policy.validate())
    }

    fn max_attempts(&self, event: &Event) -> u32 {
        self.of(event).max_attempts(event)
    }

    fn retry_after_cap(&self, event: &Event) -> Duration {
        self.of(event).retry_after_cap(event)
    }

    fn decide(&self, attempt: &FailedAttempt, error: &DeliveryError) -> RetryDecision {
        self.of(&attempt.event).decide(attempt, error)
    }
}

impl fmt::Debug for RetryRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryRoutes")
            .field("event_types", &self.event_types.len())
            .field("destinations", &self.destinations.len())
            .finish_non_exhaustive()
    }
}
