//! One attempt, from the lookup of the destination to the verdict.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use http::header::LOCATION;
use http::{Response, StatusCode};
use hyper::body::Incoming;
use outbox_core::{DeathReason, Delivery, DeliveryError, DeliveryErrorKind, Phase, Receipt};
use tokio::time::{Instant, sleep_until};

use super::{Inner, response};
use crate::client::{HttpFailure, HttpFailureKind, Progress, Timeouts, from_hyper};
use crate::destination::{Endpoint, Resolution};
use crate::outcome::{Answer, Verdict, retry_after};

impl Inner {
    pub(super) async fn attempt(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        delivery.advance(Phase::Waiting);
        let started = Instant::now();
        let endpoint = self.endpoint(&delivery.event().destination).await?;
        let timeouts = endpoint.timeouts.unwrap_or(self.timeouts);
        let end = started + timeouts.total.min(delivery.timeout());
        endpoint.target.check(&self.guard).map_err(|refused| {
            failed(HttpFailure::new(HttpFailureKind::Refused).with_source(refused))
        })?;
        let progress = Arc::new(Progress::new(delivery.clone()));
        let request = self
            .request(delivery.event(), &endpoint, progress.clone())
            .await?;
        let sent = pin!(self.client.send(request));
        let answer = head(sent, &progress, &timeouts, end).await;
        let answer = answer.map_err(|failure| {
            let phase = if progress.is_sending() {
                Phase::Sending
            } else {
                Phase::Waiting
            };
            failed(failure).with_phase(phase)
        })?;
        delivery.advance(Phase::Answered);
        self.conclude(&delivery, answer, &timeouts, end).await
    }

    async fn endpoint(&self, destination: &str) -> Result<Arc<Endpoint>, DeliveryError> {
        let waiting = |error: DeliveryError, detail: String| {
            error
                .with_phase(Phase::Waiting)
                .with_source(HttpFailure::new(HttpFailureKind::Destination).with_detail(detail))
        };
        match self.destinations.resolve(destination).await {
            Ok(Resolution::Endpoint(endpoint)) => Ok(endpoint),
            Ok(Resolution::Disabled { reason }) => Err(waiting(
                DeliveryError::not_attempted("the destination is disabled")
                    .with_retry_after(self.recheck),
                reason,
            )),
            Ok(Resolution::Unknown) => Err(waiting(
                DeliveryError::unroutable("no such destination"),
                "it is no URL that can be delivered to, and not configured".to_owned(),
            )),
            Err(error) => {
                let failure = HttpFailure::new(HttpFailureKind::Destination).with_source(error);
                Err(
                    DeliveryError::not_attempted("the destination could not be looked up")
                        .with_phase(Phase::Waiting)
                        .with_source(failure),
                )
            }
        }
    }

    async fn conclude(
        &self,
        delivery: &Delivery,
        answer: Response<Incoming>,
        timeouts: &Timeouts,
        end: Instant,
    ) -> Result<Receipt, DeliveryError> {
        let (head, body) = answer.into_parts();
        let wait = retry_after(&head.headers, self.clock.now());
        let mut seen = Answer::new(head.status, &head.headers);
        seen.retry_after = wait;
        seen.repeated = delivery.attempt() > 1 || delivery.event().replays > 0;
        let verdict = self.classifier.classify(&seen);
        let until = end.min(Instant::now() + timeouts.body);
        let captured = response::read(body, self.capture, self.max_body, until).await;
        let Some(kind) = failure_kind(verdict) else {
            return Ok(Receipt::with_detail(head.status.to_string()));
        };
        let failure = HttpFailure::new(HttpFailureKind::Status(head.status));
        let failure =
            match redirect(head.status, &head.headers).or_else(|| response::snippet(&captured)) {
                Some(detail) => failure.with_detail(detail),
                None => failure,
            };
        let error = DeliveryError::new(kind, format!("the receiver answered {}", head.status))
            .with_phase(Phase::Answered)
            .with_source(failure);
        Err(match wait {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        })
    }
}

/// Waits for the head of the answer, within its deadline and the attempt's.
async fn head(
    mut sent: std::pin::Pin<
        &mut impl Future<Output = Result<Response<Incoming>, hyper_util::client::legacy::Error>>,
    >,
    progress: &Progress,
    timeouts: &Timeouts,
    end: Instant,
) -> Result<Response<Incoming>, HttpFailure> {
    let mut alarm = pin!(sleep_until(end.min(Instant::now() + timeouts.head)));
    poll_fn(|cx| {
        if let Poll::Ready(answer) = sent.as_mut().poll(cx) {
            return Poll::Ready(answer.map_err(from_hyper));
        }
        while alarm.as_mut().poll(cx).is_ready() {
            // The head's time runs from the first byte of the request, which is known by now.
            let due = match progress.sending_since() {
                Some(since) => end.min(since + timeouts.head),
                None => end,
            };
            let now = Instant::now();
            if now >= due {
                let kind = if now >= end {
                    HttpFailureKind::TotalTimeout
                } else {
                    HttpFailureKind::HeadTimeout
                };
                return Poll::Ready(Err(HttpFailure::new(kind)));
            }
            // Still waiting for a connection: look again after the head's time at the latest.
            let next = if progress.is_sending() {
                due
            } else {
                due.min(now + timeouts.head)
            };
            alarm.as_mut().reset(next);
        }
        Poll::Pending
    })
    .await
}

/// The error for an attempt without an answer.
fn failed(failure: HttpFailure) -> DeliveryError {
    let error = match failure.kind() {
        HttpFailureKind::Refused => {
            DeliveryError::unroutable("delivery is not allowed there").with_phase(Phase::Waiting)
        }
        _ => DeliveryError::transient("no answer from the receiver"),
    };
    error.with_source(failure)
}

/// The kind of error for a verdict; `None` where the event is delivered.
fn failure_kind(verdict: Verdict) -> Option<DeliveryErrorKind> {
    match verdict {
        Verdict::Delivered | Verdict::AlreadyReceived => None,
        Verdict::Transient => Some(DeliveryErrorKind::Transient),
        Verdict::Throttled => Some(DeliveryErrorKind::Throttled),
        Verdict::Rejected => Some(DeliveryErrorKind::Permanent(DeathReason::Rejected)),
        Verdict::Gone => Some(DeliveryErrorKind::Permanent(DeathReason::Gone)),
    }
}

/// Where a redirect points: its host alone, since the rest can hold secrets.
fn redirect(status: StatusCode, headers: &http::HeaderMap) -> Option<String> {
    if !status.is_redirection() {
        return None;
    }
    let location = headers.get(LOCATION)?.to_str().ok()?;
    let uri: http::Uri = location.parse().ok()?;
    Some(match uri.host() {
        Some(host) => format!("redirects are not followed (to {host})"),
        None => "redirects are not followed (to the same host)".to_owned(),
    })
}
