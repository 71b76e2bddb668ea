//! Why an attempt failed, and what follows from it.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::{DeathReason, Phase};

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// What follows from a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeliveryErrorKind {
    /// May succeed later: the retry policy decides.
    Transient,
    /// May succeed later, and the whole destination asks for a pause.
    Throttled,
    /// Nothing was attempted (limiter, open circuit, shutdown): not charged, due again later.
    NotAttempted,
    /// Will never succeed: dead at once, with this reason.
    Permanent(DeathReason),
}

/// A failed attempt.
///
/// `Display` prints this level only; the cause is in [`source`](StdError::source). It never holds a
/// payload, a secret, or a URL with credentials.
#[derive(Debug)]
pub struct DeliveryError {
    kind: DeliveryErrorKind,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    phase: Option<Phase>,
    source: Option<Source>,
}

impl DeliveryError {
    /// An error of any kind.
    pub fn new(kind: DeliveryErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            phase: None,
            source: None,
        }
    }

    /// May succeed later.
    pub fn transient(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(DeliveryErrorKind::Transient, message)
    }

    /// The receiver refused the event for good.
    pub fn rejected(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(DeliveryErrorKind::Permanent(DeathReason::Rejected), message)
    }

    /// The receiver says that the destination is gone.
    pub fn gone(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(DeliveryErrorKind::Permanent(DeathReason::Gone), message)
    }

    /// This transport can't send to that destination.
    pub fn unroutable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(
            DeliveryErrorKind::Permanent(DeathReason::Unroutable),
            message,
        )
    }

    /// The destination asks for a pause.
    pub fn throttled(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(DeliveryErrorKind::Throttled, message)
    }

    /// Nothing was attempted.
    pub fn not_attempted(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(DeliveryErrorKind::NotAttempted, message)
    }

    /// The receiver's wish: not again before this much time has passed. The retry policy has a cap on
    /// it ([`retry_after_cap`](crate::RetryPolicy::retry_after_cap)).
    #[must_use]
    pub const fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// How far the attempt had come, where the transport knows better than the shared phase.
    #[must_use]
    pub const fn with_phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    /// The cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What follows from it.
    #[must_use]
    pub const fn kind(&self) -> DeliveryErrorKind {
        self.kind
    }

    /// The receiver's wish for a pause.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// How far the attempt had come, if the transport said so.
    #[must_use]
    pub const fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// This level and all causes in one line, for `last_error`.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = self.message.to_string();
        let mut cause = StdError::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for DeliveryError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
