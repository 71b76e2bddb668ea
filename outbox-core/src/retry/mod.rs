//! When to try again, and when to give up.

mod backoff;
mod delays;
mod routes;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

pub use backoff::Backoff;
pub use delays::Jitter;
pub use routes::RetryRoutes;
pub use schedule::FixedSchedule;

use crate::{DeathReason, DeliveryError, Error, Event};

/// A failed attempt, as a policy sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The event; its `attempts` count this one.
    pub event: Arc<Event>,
    /// How long ago it was enqueued or replayed.
    pub age: Duration,
}

impl FailedAttempt {
    /// A failed attempt at an event of this age.
    #[must_use]
    pub const fn new(event: Arc<Event>, age: Duration) -> Self {
        Self { event, age }
    }
}

/// What a policy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryDecision {
    /// Again, after this long.
    After(Duration),
    /// Never again.
    GiveUp(DeathReason),
}

/// Decides about transient failures: a pure function, so that it can be tested without a clock.
/// Ready-made: [`Backoff`], [`FixedSchedule`], and [`RetryRoutes`] to mix them.
///
/// Permanent failures die without asking it, failures that were not attempted are deferred without
/// asking it, and an event's own `max_attempts` goes before the policy's.
///
/// # Contract
///
/// Any input gives an answer; no overflow, no panic. A receiver's
/// [`retry_after`](DeliveryError::retry_after) is a floor: the answer is never sooner.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use outbox_core::{DeliveryError, Error, Event, FailedAttempt, RetryDecision, RetryPolicy};
///
/// /// Every minute for a day.
/// struct EveryMinute;
///
/// impl RetryPolicy for EveryMinute {
///     fn validate(&self) -> Result<(), Error> { Ok(()) }
///     fn max_attempts(&self, _: &Event) -> u32 { 24 * 60 }
///     fn decide(&self, _: &FailedAttempt, error: &DeliveryError) -> RetryDecision {
///         RetryDecision::After(error.retry_after().unwrap_or_default().max(Duration::from_secs(60)))
///     }
/// }
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait RetryPolicy: Send + Sync {
    /// Refuses settings that make no policy; called where a relay is built.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig), naming the setting.
    fn validate(&self) -> Result<(), Error>;

    /// The most attempts for this event. One that was claimed more often (its attempts killed the
    /// process, say) is dead-lettered undelivered.
    fn max_attempts(&self, event: &Event) -> u32;

    /// The longest wait that a receiver, a limiter or a circuit may ask for with
    /// [`retry_after`](DeliveryError::retry_after): longer ones count as this long where a whole
    /// destination is held (throttled, on the last attempt too) or an attempt was not made. For the
    /// event's own next attempt, [`decide`](Self::decide) decides. Default: 24 h.
    fn retry_after_cap(&self, event: &Event) -> Duration {
        let _ = event;
        Duration::from_secs(24 * 60 * 60)
    }

    /// What follows from a transient failure. Attempts are not yet exhausted.
    fn decide(&self, attempt: &FailedAttempt, error: &DeliveryError) -> RetryDecision;
}
