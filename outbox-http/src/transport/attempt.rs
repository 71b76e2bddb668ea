//! One attempt, from the lookup of the destination to the verdict.

use std::sync::Arc;
use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderMap, Response, StatusCode, Uri};
use outbox_core::{DeathReason, Delivery, DeliveryError, DeliveryErrorKind, Phase, Receipt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::redact::redact;
use super::report::Notes;
use super::{Inner, head, response};
use crate::client::{HttpFailure, HttpFailureKind, Progress, ResponseBody};
use crate::destination::{Endpoint, Resolution};
use crate::outcome::{Answer, DeliveryHeader, Verdict, retry_after};

/// After how long a delivery that found no free slot of its endpoint is due again.
const SATURATED: Duration = Duration::from_secs(1);

impl Inner {
    pub(super) async fn attempt(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        delivery.advance(Phase::Waiting);
        let started = Instant::now();
        let mut notes = Notes::default();
        let result = self.try_attempt(&delivery, started, &mut notes).await;
        if let Some(observer) = &self.observer {
            let error = result.as_ref().err();
            let report = notes.report(delivery.event(), error, delivery.phase(), started.elapsed());
            observer.attempted(&report);
        }
        result
    }

    async fn try_attempt(
        &self,
        delivery: &Delivery,
        started: Instant,
        notes: &mut Notes,
    ) -> Result<Receipt, DeliveryError> {
        let limit = within(delivery.timeout());
        let latest = started + self.timeouts.total.min(limit);
        let lookup = self.endpoint(&delivery.event().destination);
        let endpoint = timeout_at(latest, lookup)
            .await
            .unwrap_or_else(|_| Err(lookup_too_slow()))?;
        if self.observer.is_some() {
            notes.host = Some(endpoint.target.host().to_owned());
        }
        let _slot = slot(&endpoint)?;
        self.check(&endpoint)?;
        self.check_signers(&endpoint)?;
        let timeouts = endpoint.timeouts.unwrap_or(self.timeouts);
        let end = started + timeouts.total.min(limit);
        let progress = Arc::new(Progress::new(delivery.clone()));
        let request = self.request(delivery.event(), &endpoint, progress.clone());
        let request = timeout_at(end, request).await.unwrap_or_else(|_| {
            let failure = HttpFailure::new(HttpFailureKind::TotalTimeout);
            Err(not_sent(failure.with_detail("signing took too long")))
        })?;
        let client = self
            .clients
            .client(endpoint.identity.as_ref(), endpoint.guard.as_ref())
            .map_err(|source| {
                not_sent(HttpFailure::new(HttpFailureKind::Tls).with_source(source))
            })?;
        let answer = head::answer(client.send(request), &progress, &timeouts, end).await;
        let answer = answer.map_err(|failure| {
            if progress.is_sending() {
                ambiguous(failure)
            } else {
                not_sent(failure)
            }
        })?;
        delivery.advance(Phase::Answered);
        self.conclude(delivery, &endpoint, answer, end, notes).await
    }

    async fn endpoint(&self, destination: &str) -> Result<Arc<Endpoint>, DeliveryError> {
        let failure = HttpFailure::new(HttpFailureKind::Destination);
        let (error, failure) = match self.destinations.resolve(destination).await {
            Ok(Resolution::Endpoint(endpoint)) => return Ok(endpoint),
            Ok(Resolution::Disabled { reason }) => (
                DeliveryError::not_attempted("the destination is disabled")
                    .with_retry_after(self.recheck),
                failure.with_detail(reason),
            ),
            Ok(Resolution::Invalid { reason }) => (
                DeliveryError::unroutable("the destination can't be delivered to"),
                failure.with_detail(reason),
            ),
            Ok(Resolution::Unknown) => (
                DeliveryError::unroutable("no such destination"),
                failure.with_detail("it is not configured"),
            ),
            Err(source) => (
                DeliveryError::not_attempted("the destination could not be looked up"),
                failure.with_source(source),
            ),
        };
        Err(error.with_phase(Phase::Waiting).with_source(failure))
    }

    /// What can be refused on every attempt before a connection is looked for.
    fn check(&self, endpoint: &Endpoint) -> Result<(), DeliveryError> {
        let guard = endpoint.guard.as_ref().unwrap_or(self.clients.guard());
        let refused = |failure| Err(not_sent(failure));
        if let Err(reason) = guard.check_uri(endpoint.target.uri()) {
            return refused(HttpFailure::new(HttpFailureKind::Refused).with_source(reason));
        }
        if endpoint.identity.is_some() && !endpoint.target.is_https() {
            let detail = "the destination has an identity but its URL is not https";
            return refused(HttpFailure::new(HttpFailureKind::Refused).with_detail(detail));
        }
        Ok(())
    }

    /// An endpoint for which nothing signs is a mistake in its settings, unless they say so: its
    /// events wait until it is mended.
    fn check_signers(&self, endpoint: &Endpoint) -> Result<(), DeliveryError> {
        let unsigned = match &endpoint.signers {
            Some(_) => false,
            None => self.signers.is_empty() && !self.unsigned,
        };
        if !unsigned {
            return Ok(());
        }
        let detail = "neither the destination nor the transport has a signer; give it one, or say \
                      `unsigned()`";
        Err(
            DeliveryError::not_attempted("the destination is not signed for")
                .with_retry_after(self.recheck)
                .with_phase(Phase::Waiting)
                .with_source(HttpFailure::new(HttpFailureKind::Destination).with_detail(detail)),
        )
    }

    async fn conclude(
        &self,
        delivery: &Delivery,
        endpoint: &Endpoint,
        answer: Response<ResponseBody>,
        end: Instant,
        notes: &mut Notes,
    ) -> Result<Receipt, DeliveryError> {
        let (head, body) = answer.into_parts();
        let mut seen = Answer::new(head.status, &head.headers);
        seen.retry_after = retry_after(&head.headers, self.clock.now());
        seen.repeated = delivery.attempt() > 1 || delivery.event().replays > 0;
        let wish = self
            .heed_header
            .then(|| DeliveryHeader::of(&head.headers))
            .flatten();
        let verdict = match (self.classifier.classify(&seen), wish) {
            (delivered @ (Verdict::Delivered | Verdict::AlreadyReceived), _) => delivered,
            (_, Some(wish)) => wish.verdict(),
            (verdict, None) => verdict,
        };
        notes.status = Some(head.status);
        notes.verdict = Some(verdict);
        notes.asks_to_disable = wish == Some(DeliveryHeader::Disable);

        let timeouts = endpoint.timeouts.unwrap_or(self.timeouts);
        let until = end.min(Instant::now() + timeouts.body);
        let Some(kind) = failure_kind(verdict) else {
            response::read(body, 0, until).await;
            return Ok(receipt(head.status, verdict));
        };
        let captured = response::read(body, self.capture, until).await;
        notes.snippet = response::snippet(captured, &head.headers, self.capture)
            .map(|text| redact(text, endpoint));
        let mut failure = HttpFailure::new(HttpFailureKind::Status(head.status));
        if let Some(redirect) = redirect(head.status, &head.headers) {
            failure = failure.with_detail(redirect);
        } else if let Some(text) = &notes.snippet {
            failure = failure.with_detail(format!("the answer begins: {text}"));
        }
        let error = DeliveryError::new(kind, format!("the receiver answered {}", head.status))
            .with_phase(Phase::Answered)
            .with_source(failure);
        Err(match seen.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        })
    }
}

/// A little less than the relay's own time-out, after which it would drop the attempt with all that is
/// known of it: that the receiver has said 2xx, say, and only its body goes on.
fn within(timeout: Duration) -> Duration {
    timeout - (timeout / 20).min(Duration::from_millis(500))
}

fn lookup_too_slow() -> DeliveryError {
    let failure = HttpFailure::new(HttpFailureKind::Destination);
    DeliveryError::not_attempted("the destination could not be looked up")
        .with_phase(Phase::Waiting)
        .with_source(failure.with_detail("the lookup took too long"))
}

/// A slot of the endpoint, where it has a limit.
fn slot(endpoint: &Endpoint) -> Result<Option<OwnedSemaphorePermit>, DeliveryError> {
    let Some(slots) = &endpoint.slots else {
        return Ok(None);
    };
    slots.clone().try_acquire_owned().map(Some).map_err(|_| {
        DeliveryError::not_attempted("the destination has no free slot")
            .with_retry_after(SATURATED)
            .with_phase(Phase::Waiting)
            .with_source(HttpFailure::new(HttpFailureKind::Destination))
    })
}

/// The error of an attempt of which no byte was sent.
fn not_sent(failure: HttpFailure) -> DeliveryError {
    let error = match failure.kind() {
        HttpFailureKind::Refused => DeliveryError::unroutable("delivery is not allowed there"),
        HttpFailureKind::Request => {
            DeliveryError::unroutable("the event can't be made into a request")
        }
        HttpFailureKind::Proxy => DeliveryError::not_attempted("the way out is closed"),
        _ => DeliveryError::transient("nothing was sent"),
    };
    error.with_phase(Phase::Waiting).with_source(failure)
}

/// The error of an attempt that may have reached the receiver.
fn ambiguous(failure: HttpFailure) -> DeliveryError {
    DeliveryError::transient("sent, but no answer came")
        .with_phase(Phase::Sending)
        .with_source(failure)
}

/// The kind of error for a verdict; `None` where the event is delivered.
const fn failure_kind(verdict: Verdict) -> Option<DeliveryErrorKind> {
    match verdict {
        Verdict::Delivered | Verdict::AlreadyReceived => None,
        Verdict::Transient => Some(DeliveryErrorKind::Transient),
        Verdict::Throttled => Some(DeliveryErrorKind::Throttled),
        Verdict::Rejected => Some(DeliveryErrorKind::Permanent(DeathReason::Rejected)),
        Verdict::Gone => Some(DeliveryErrorKind::Permanent(DeathReason::Gone)),
    }
}

fn receipt(status: StatusCode, verdict: Verdict) -> Receipt {
    match (verdict, status.canonical_reason()) {
        (Verdict::AlreadyReceived, _) => Receipt::with_detail(format!("{status}: received before")),
        // Spares the common answer an allocation for formatting.
        (_, Some(_)) if status == StatusCode::OK => Receipt::with_detail("200 OK"),
        _ => Receipt::with_detail(status.to_string()),
    }
}

/// Where a redirect points: its host alone, since the rest can hold secrets.
fn redirect(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    if !status.is_redirection() {
        return None;
    }
    let location: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    Some(match location.host() {
        Some(host) => format!("redirects are not followed (to {host})"),
        None => "redirects are not followed (to the same host)".to_owned(),
    })
}
