//! What an attempt came to, for observers.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use outbox_core::{DeliveryError, Event, Phase};

use crate::client::{HttpFailure, HttpFailureKind};
use crate::outcome::Verdict;

/// One attempt, told to the observer when it has ended.
///
/// `Debug` shows no secret of the URL, the host alone, and neither payload nor headers. A destination
/// that is a URL stands in the event with all its parts: log `host` instead.
#[derive(Clone)]
#[non_exhaustive]
pub struct AttemptReport<'a> {
    /// The event.
    pub event: &'a Event,
    /// The host, where the destination was found.
    pub host: Option<&'a str>,
    /// The status of the answer, where there was one.
    pub status: Option<StatusCode>,
    /// What the answer meant, where there was one.
    pub verdict: Option<Verdict>,
    /// What went wrong, where something did.
    pub failure: Option<HttpFailureKind>,
    /// How far the attempt came: not sent, sent without an answer (ambiguous), answered.
    pub phase: Phase,
    /// How long it took.
    pub took: Duration,
    /// What the receiver asked to wait.
    pub retry_after: Option<Duration>,
    /// The beginning of the body of an answer that meant failure, as text for people.
    pub snippet: Option<&'a str>,
    /// The receiver asks, by `webhook-delivery: disable`, to get no more events. Told only where the
    /// transport [heeds that header](crate::WebhooksBuilder::heed_delivery_header).
    pub asks_to_disable: bool,
}

impl fmt::Debug for AttemptReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptReport")
            .field("event", &self.event.id)
            .field("attempt", &self.event.attempts)
            .field("host", &self.host)
            .field("status", &self.status)
            .field("verdict", &self.verdict)
            .field("failure", &self.failure)
            .field("phase", &self.phase)
            .field("took", &self.took)
            .field("retry_after", &self.retry_after)
            .field("snippet", &self.snippet)
            .field("asks_to_disable", &self.asks_to_disable)
            .finish()
    }
}

/// Sees every attempt. Any `Fn(&AttemptReport)` is one.
///
/// # Contract
///
/// It runs in the delivery's own task: be quick, and don't block. It decides nothing. An attempt that
/// is dropped (at a relay's abort) is not told.
pub trait AttemptObserver: Send + Sync {
    /// An attempt has ended.
    fn attempted(&self, report: &AttemptReport<'_>);
}

impl<F: Fn(&AttemptReport<'_>) + Send + Sync> AttemptObserver for F {
    fn attempted(&self, report: &AttemptReport<'_>) {
        self(report);
    }
}

/// What is noted while an attempt goes on.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) host: Option<String>,
    pub(super) status: Option<StatusCode>,
    pub(super) verdict: Option<Verdict>,
    pub(super) snippet: Option<String>,
    pub(super) asks_to_disable: bool,
}

impl Notes {
    pub(super) fn report<'a>(
        &'a self,
        event: &'a Event,
        error: Option<&DeliveryError>,
        phase: Phase,
        took: Duration,
    ) -> AttemptReport<'a> {
        AttemptReport {
            event,
            host: self.host.as_deref(),
            status: self.status,
            verdict: self.verdict,
            failure: error.and_then(HttpFailure::of).map(HttpFailure::kind),
            phase: error.and_then(DeliveryError::phase).unwrap_or(phase),
            took,
            retry_after: error.and_then(DeliveryError::retry_after),
            snippet: self.snippet.as_deref(),
            asks_to_disable: self.asks_to_disable,
        }
    }
}
