//! From a response head to a verdict.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// What an answer means for the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The receiver has the event.
    Delivered,
    /// The receiver had the event from an earlier attempt: it counts as delivered.
    AlreadyReceived,
    /// It may take the event later.
    Transient,
    /// It may take the event later, and the whole destination asks for a pause.
    Throttled,
    /// It will never take this event.
    Rejected,
    /// The destination is gone: it will never take any event.
    Gone,
}

/// The head of an answer, and which attempt it answers.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// How long the receiver asks to wait ([`retry_after`](super::retry_after)).
    pub retry_after: Option<Duration>,
    /// Whether an earlier attempt may have reached the receiver: this one is not the first, or the
    /// event is a replay.
    pub repeated: bool,
}

impl<'a> Answer<'a> {
    /// The answer to a first attempt, asking for no wait.
    #[must_use]
    pub const fn new(status: StatusCode, headers: &'a HeaderMap) -> Self {
        Self {
            status,
            headers,
            retry_after: None,
            repeated: false,
        }
    }
}

/// Decides what an answer means. Any `Fn(&Answer) -> Verdict` is one.
///
/// # Contract
///
/// A pure function of its argument. Redirects are never followed, whatever it says.
///
/// # Example
///
/// Strict, but 404 heals (a receiver that is being deployed):
///
/// ```
/// use http::StatusCode;
/// use outbox_http::{Answer, Classifier, Strict, Verdict};
///
/// let classifier = |answer: &Answer<'_>| match answer.status {
///     StatusCode::NOT_FOUND => Verdict::Transient,
///     _ => Strict.classify(answer),
/// };
/// # let _: &dyn Classifier = &classifier;
/// ```
pub trait Classifier: Send + Sync {
    /// What the answer means.
    fn classify(&self, answer: &Answer<'_>) -> Verdict;
}

impl<F: Fn(&Answer<'_>) -> Verdict + Send + Sync> Classifier for F {
    fn classify(&self, answer: &Answer<'_>) -> Verdict {
        self(answer)
    }
}

/// The default: what can't succeed without a change on one side is not tried again.
///
/// | answer | verdict |
/// |---|---|
/// | 2xx | delivered |
/// | 408, 421, 423, 425, 5xx, redirects (never followed) | transient |
/// | 429; 503 with `Retry-After` | throttled |
/// | 409 with `Retry-After`, be it one that can't be read | transient: in flight |
/// | 409 without, on a repeated attempt | already received |
/// | 409 without, on a first attempt | transient |
/// | 410 | gone |
/// | other 4xx; 501, 505 | rejected |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct Strict;

impl Classifier for Strict {
    fn classify(&self, answer: &Answer<'_>) -> Verdict {
        common(answer).unwrap_or(match answer.status.as_u16() {
            408 | 421 | 423 | 425 => Verdict::Transient,
            400..=499 | 501 | 505 => Verdict::Rejected,
            _ => Verdict::Transient,
        })
    }
}

/// As Standard Webhooks has it: everything but 2xx and 410 is tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct Lenient;

impl Classifier for Lenient {
    fn classify(&self, answer: &Answer<'_>) -> Verdict {
        common(answer).unwrap_or(Verdict::Transient)
    }
}

/// Where both agree.
fn common(answer: &Answer<'_>) -> Option<Verdict> {
    let waits = answer.retry_after.is_some();
    match answer.status.as_u16() {
        200..=299 => Some(Verdict::Delivered),
        // One that can't be read says "in flight" too; taken for "received before", it could lose
        // the event.
        409 if waits || answer.headers.contains_key(RETRY_AFTER) => Some(Verdict::Transient),
        409 if !answer.repeated => Some(Verdict::Transient),
        409 => Some(Verdict::AlreadyReceived),
        410 => Some(Verdict::Gone),
        429 => Some(Verdict::Throttled),
        503 if waits => Some(Verdict::Throttled),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(classifier: &dyn Classifier, status: u16) -> Verdict {
        let headers = HeaderMap::new();
        classifier.classify(&Answer::new(
            StatusCode::from_u16(status).unwrap(),
            &headers,
        ))
    }

    #[test]
    fn strict_gives_up_where_trying_again_cannot_help() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(verdict(&Strict, status), Verdict::Delivered, "{status}");
        }
        for status in [
            301, 302, 304, 307, 308, 408, 421, 423, 425, 500, 502, 503, 504, 599, 999,
        ] {
            assert_eq!(verdict(&Strict, status), Verdict::Transient, "{status}");
        }
        for status in [
            400, 401, 403, 404, 405, 413, 414, 415, 422, 431, 451, 501, 505,
        ] {
            assert_eq!(verdict(&Strict, status), Verdict::Rejected, "{status}");
        }
        assert_eq!(verdict(&Strict, 410), Verdict::Gone);
        assert_eq!(verdict(&Strict, 429), Verdict::Throttled);
    }

    #[test]
    fn lenient_gives_up_on_410_alone() {
        for status in (300..=599).filter(|s| ![410, 429].contains(s)) {
            assert_eq!(verdict(&Lenient, status), Verdict::Transient, "{status}");
        }
        assert_eq!(verdict(&Lenient, 410), Verdict::Gone);
        assert_eq!(verdict(&Lenient, 429), Verdict::Throttled);
    }

    #[test]
    fn a_409_is_in_flight_already_received_or_a_conflict() {
        let headers = HeaderMap::new();
        let mut answer = Answer::new(StatusCode::CONFLICT, &headers);
        assert_eq!(Strict.classify(&answer), Verdict::Transient);
        answer.repeated = true;
        assert_eq!(Strict.classify(&answer), Verdict::AlreadyReceived);
        answer.retry_after = Some(Duration::from_secs(1));
        assert_eq!(Strict.classify(&answer), Verdict::Transient);
    }

    #[test]
    fn a_409_with_a_retry_after_that_cannot_be_read_is_in_flight() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "1.5".parse().unwrap());
        let mut answer = Answer::new(StatusCode::CONFLICT, &headers);
        answer.repeated = true;
        for classifier in [&Strict as &dyn Classifier, &Lenient] {
            assert_eq!(classifier.classify(&answer), Verdict::Transient);
        }
    }

    #[test]
    fn a_503_with_retry_after_holds_the_destination() {
        let headers = HeaderMap::new();
        let mut answer = Answer::new(StatusCode::SERVICE_UNAVAILABLE, &headers);
        answer.retry_after = Some(Duration::from_secs(1));
        assert_eq!(Strict.classify(&answer), Verdict::Throttled);
    }
}
