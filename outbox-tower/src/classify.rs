//! What the error of a stack of layers means for the attempt.

use std::error::Error as StdError;

use outbox_core::{DeathReason, DeliveryError, DeliveryErrorKind};
use tower::BoxError;

use crate::{NotReady, breaker, concurrency, deadline};

/// How many causes are looked at, so that a chain that loops ends.
const DEPTH: usize = 32;

/// The delivery error that a boxed error of any stack of layers stands for.
///
/// A [`DeliveryError`] that comes out as it went in stays what it is. Otherwise the chain of causes
/// is read from the outside, and the first error that is known decides:
///
/// | error | kind | charged |
/// |---|---|---|
/// | [`DeliveryError`] under wrappers | its own, with its retry-after and phase | as it says |
/// | [`Saturated`](concurrency::Saturated), `rate::RateLimited`, [`CircuitOpen`](breaker::CircuitOpen) | not attempted, with retry-after | no |
/// | [`DeadlineExceeded`](deadline::DeadlineExceeded) | transient | yes |
/// | `tower::load_shed::error::Overloaded` | not attempted | no |
/// | `tower::buffer::error::{ServiceError, Closed}` | not attempted | no |
/// | `tower::timeout::error::Elapsed` | transient | yes |
/// | [`NotReady`] around an unknown error | not attempted | no |
/// | anything else | transient | yes |
#[must_use]
pub fn classify(error: BoxError) -> DeliveryError {
    let error = match error.downcast::<DeliveryError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    let verdict = verdict(&*error);
    let mut classified = DeliveryError::new(verdict.kind, verdict.message).with_source(error);
    if let Some(after) = verdict.retry_after {
        classified = classified.with_retry_after(after);
    }
    if let Some(phase) = verdict.phase {
        classified = classified.with_phase(phase);
    }
    classified
}

/// The kind that [`classify`] gives an error, without taking it.
#[must_use]
pub fn kind_of(error: &(dyn StdError + 'static)) -> DeliveryErrorKind {
    verdict(error).kind
}

struct Verdict {
    kind: DeliveryErrorKind,
    message: &'static str,
    retry_after: Option<std::time::Duration>,
    phase: Option<outbox_core::Phase>,
}

impl Verdict {
    const fn new(kind: DeliveryErrorKind, message: &'static str) -> Self {
        Self {
            kind,
            message,
            retry_after: None,
            phase: None,
        }
    }

    const fn not_attempted(message: &'static str) -> Self {
        Self::new(DeliveryErrorKind::NotAttempted, message)
    }

    const fn after(mut self, after: std::time::Duration) -> Self {
        self.retry_after = Some(after);
        self
    }
}

fn verdict(error: &(dyn StdError + 'static)) -> Verdict {
    let mut unready = false;
    let mut next = Some(error);
    for _ in 0..DEPTH {
        let Some(error) = next else { break };
        unready |= error.is::<NotReady>();
        if let Some(verdict) = known(error) {
            return verdict;
        }
        next = error.source();
    }
    if unready {
        Verdict::not_attempted("a layer was not ready")
    } else {
        Verdict::new(DeliveryErrorKind::Transient, "delivery failed")
    }
}

fn known(error: &(dyn StdError + 'static)) -> Option<Verdict> {
    if let Some(error) = error.downcast_ref::<DeliveryError>() {
        return Some(Verdict {
            kind: error.kind(),
            message: message(error.kind()),
            retry_after: error.retry_after(),
            phase: error.phase(),
        });
    }
    own(error).or_else(|| towers(error))
}

const fn message(kind: DeliveryErrorKind) -> &'static str {
    match kind {
        DeliveryErrorKind::NotAttempted => "not attempted",
        DeliveryErrorKind::Throttled => "throttled",
        DeliveryErrorKind::Permanent(DeathReason::Gone) => "the destination is gone",
        DeliveryErrorKind::Permanent(DeathReason::Unroutable) => "unroutable",
        DeliveryErrorKind::Permanent(_) => "refused for good",
        _ => "delivery failed",
    }
}

fn own(error: &(dyn StdError + 'static)) -> Option<Verdict> {
    if let Some(error) = error.downcast_ref::<concurrency::Saturated>() {
        return Some(Verdict::not_attempted("no free slot").after(error.retry_after()));
    }
    if let Some(error) = error.downcast_ref::<breaker::CircuitOpen>() {
        return Some(Verdict::not_attempted("circuit open").after(error.retry_after()));
    }
    #[cfg(feature = "rate")]
    if let Some(error) = error.downcast_ref::<crate::rate::RateLimited>() {
        return Some(Verdict::not_attempted("rate limited").after(error.retry_after()));
    }
    error
        .is::<deadline::DeadlineExceeded>()
        .then(|| Verdict::new(DeliveryErrorKind::Transient, "timed out"))
}

#[cfg(feature = "tower-errors")]
fn towers(error: &(dyn StdError + 'static)) -> Option<Verdict> {
    if error.is::<tower::load_shed::error::Overloaded>() {
        return Some(Verdict::not_attempted("shed"));
    }
    if error.is::<tower::buffer::error::ServiceError>()
        || error.is::<tower::buffer::error::Closed>()
    {
        return Some(Verdict::not_attempted("the buffered service is dead"));
    }
    error
        .is::<tower::timeout::error::Elapsed>()
        .then(|| Verdict::new(DeliveryErrorKind::Transient, "timed out"))
}

#[cfg(not(feature = "tower-errors"))]
const fn towers(_: &(dyn StdError + 'static)) -> Option<Verdict> {
    None
}
