//! What follows from an attempt: a pure function of the event, the policy and the error.

use std::time::Duration;

use crate::faults::contained;
use crate::{
    Backoff, Claimed, DeathReason, DeliveryError, DeliveryErrorKind, FailedAttempt, Outcome,
    RetryDecision, RetryPolicy, error_text,
};

/// How long an attempt that was not made is put off, where nobody said.
const DEFER: Duration = Duration::from_secs(1);
/// The least that it is put off: what charges nothing must not spin.
const LEAST_DEFER: Duration = Duration::from_millis(10);

/// What follows from a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    /// Leave the destination alone for this long, in this relay.
    pub(super) pause: Option<Duration>,
    /// Tell every relay so.
    pub(super) shared: bool,
}

impl Verdict {
    const fn only(outcome: Outcome) -> Self {
        Self {
            outcome,
            pause: None,
            shared: false,
        }
    }
}

/// Why a claimed event must not be delivered at all. `expired`: its deadline has passed.
pub(super) fn undeliverable(
    policy: &dyn RetryPolicy,
    claimed: &Claimed,
    expired: bool,
) -> Option<(DeathReason, String)> {
    if expired {
        return Some((
            DeathReason::Expired,
            "expired before it was delivered".into(),
        ));
    }
    let attempts = claimed.event.attempts;
    // Only an event that was claimed more than once can be over a limit of at least one.
    if attempts <= 1 {
        return None;
    }
    let limit = limit(policy, claimed);
    (attempts > limit).then(|| {
        let last = claimed.event.last_error.as_deref().unwrap_or("none");
        let error =
            format!("claimed {attempts} times, at most {limit} allowed; last error: {last}");
        (DeathReason::AttemptsExhausted, error_text(&error))
    })
}

/// What becomes of the event after this error.
pub(super) fn failed(
    policy: &dyn RetryPolicy,
    claimed: &Claimed,
    age: Duration,
    error: &DeliveryError,
) -> Verdict {
    let text = error_text(&error.report());
    match error.kind() {
        DeliveryErrorKind::Permanent(reason) => Verdict::only(Outcome::Dead {
            reason,
            error: text,
        }),
        DeliveryErrorKind::NotAttempted => {
            let after = asked(policy, claimed, error).unwrap_or(DEFER);
            let after = after.max(LEAST_DEFER);
            Verdict {
                outcome: Outcome::Defer {
                    after,
                    reason: text,
                },
                pause: Some(after),
                shared: false,
            }
        }
        DeliveryErrorKind::Transient => Verdict::only(retry(policy, claimed, age, error, text).0),
        DeliveryErrorKind::Throttled => {
            let (outcome, after) = retry(policy, claimed, age, error, text);
            let asked = asked(policy, claimed, error).or(after).unwrap_or(DEFER);
            Verdict {
                outcome,
                // What the policy made of it goes for the destination too.
                pause: Some(after.map_or(asked, |after| asked.min(after))),
                shared: true,
            }
        }
    }
}

fn retry(
    policy: &dyn RetryPolicy,
    claimed: &Claimed,
    age: Duration,
    error: &DeliveryError,
    text: String,
) -> (Outcome, Option<Duration>) {
    let dead = |reason, error| (Outcome::Dead { reason, error }, None);
    if claimed.event.attempts >= limit(policy, claimed) {
        return dead(DeathReason::AttemptsExhausted, text);
    }
    let attempt = FailedAttempt::new(claimed.event.clone(), age);
    let decision = contained(|| policy.decide(&attempt, error)).unwrap_or_else(|panic| {
        tracing::error!(panic, "the retry policy panicked; the default one decides");
        Backoff::exponential().decide(&attempt, error)
    });
    match decision {
        RetryDecision::After(after) => (Outcome::Retry { after, error: text }, Some(after)),
        RetryDecision::GiveUp(reason) => dead(reason, text),
    }
}

/// How long the receiver asked to be left alone, within what the policy allows.
fn asked(policy: &dyn RetryPolicy, claimed: &Claimed, error: &DeliveryError) -> Option<Duration> {
    let asked = error.retry_after()?;
    let event = &claimed.event;
    let cap = contained(|| policy.retry_after_cap(event))
        .unwrap_or_else(|_| RetryPolicy::retry_after_cap(&Backoff::exponential(), event));
    Some(asked.min(cap))
}

fn limit(policy: &dyn RetryPolicy, claimed: &Claimed) -> u32 {
    let event = &claimed.event;
    let limit = event.max_attempts.unwrap_or_else(|| {
        contained(|| policy.max_attempts(event))
            .unwrap_or_else(|_| RetryPolicy::max_attempts(&Backoff::exponential(), event))
    });
    limit.max(1)
}
