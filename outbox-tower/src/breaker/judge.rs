use outbox_core::{DeathReason, DeliveryErrorKind};
use tower::BoxError;

use crate::classify::kind_of;

/// What an outcome says about the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// It works.
    Success,
    /// It doesn't.
    Failure,
    /// Nothing.
    Neutral,
}

/// Judges outcomes. Functions from `Result<&T, &BoxError>` implement it.
pub trait Judge<T>: Clone {
    /// What this outcome says about the key.
    fn judge(&self, outcome: Result<&T, &BoxError>) -> Verdict;
}

impl<T, F> Judge<T> for F
where
    F: Fn(Result<&T, &BoxError>) -> Verdict + Clone,
{
    fn judge(&self, outcome: Result<&T, &BoxError>) -> Verdict {
        self(outcome)
    }
}

/// Any answer is a success, and so is a refusal for good, since the receiver works. Transient
/// errors are failures. What was not attempted or not routable says nothing, nor does a throttle,
/// for which the relay holds the destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct ByError;

impl<T> Judge<T> for ByError {
    fn judge(&self, outcome: Result<&T, &BoxError>) -> Verdict {
        let Err(error) = outcome else {
            return Verdict::Success;
        };
        match kind_of(&**error) {
            DeliveryErrorKind::Transient => Verdict::Failure,
            DeliveryErrorKind::Permanent(DeathReason::Rejected | DeathReason::Gone) => {
                Verdict::Success
            }
            _ => Verdict::Neutral,
        }
    }
}

/// For services of `http::Request`: 408 and 5xx but 501 and 505 are failures too, 429 says nothing.
#[cfg(feature = "http")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct ByStatus;

#[cfg(feature = "http")]
impl<B> Judge<::http::Response<B>> for ByStatus {
    fn judge(&self, outcome: Result<&::http::Response<B>, &BoxError>) -> Verdict {
        match outcome.map(|response| response.status().as_u16()) {
            Ok(429) => Verdict::Neutral,
            Ok(501 | 505) => Verdict::Success,
            Ok(408 | 500..=599) => Verdict::Failure,
            _ => ByError.judge(outcome),
        }
    }
}
