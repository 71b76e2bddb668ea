//! One span per attempt.

use async_trait::async_trait;
use tracing::Instrument;
use tracing::field::{Empty, display};

use super::destination::shown_destination;
use super::traceparent::TraceParent;
use crate::{Delivery, DeliveryError, Receipt, Transport};

/// A transport whose every attempt runs in a `tracing` span, `outbox.attempt`, in which all that
/// the inner transport logs is found.
///
/// Fields: `event.id`, `event.seq`, `event.type`, `destination` (of a URL only scheme, host and
/// port), `attempt`; `link.trace_id`, `link.span_id` and `link.sampled` where the event carries the
/// producer's W3C `traceparent` header, to make a link of in OpenTelemetry; at the end `outcome`
/// (`delivered` or `failed`; empty where the attempt was dropped) and `error`. Never a payload.
#[derive(Debug, Clone)]
pub struct Traced<T>(T);

impl<T: Transport> Traced<T> {
    /// `transport` with spans.
    pub const fn new(transport: T) -> Self {
        Self(transport)
    }
}

#[async_trait]
impl<T: Transport> Transport for Traced<T> {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let event = delivery.event();
        let span = tracing::info_span!(
            target: "outbox::attempt",
            "outbox.attempt",
            event.id = %event.id,
            event.seq = event.seq,
            event.type = event.event_type,
            destination = shown_destination(&event.destination),
            attempt = delivery.attempt(),
            link.trace_id = Empty,
            link.span_id = Empty,
            link.sampled = Empty,
            outcome = Empty,
            error = Empty,
        );
        if let Some(parent) = TraceParent::of(event).filter(|_| !span.is_disabled()) {
            span.record("link.trace_id", format_args!("{:032x}", parent.trace_id()));
            span.record("link.span_id", format_args!("{:016x}", parent.span_id()));
            span.record("link.sampled", parent.is_sampled());
        }
        let result = self.0.deliver(delivery).instrument(span.clone()).await;
        match &result {
            Ok(_) => span.record("outcome", "delivered"),
            Err(error) => span
                .record("outcome", "failed")
                .record("error", display(error.report())),
        };
        result
    }
}
