use std::task::{Context, Poll};
use std::time::Instant;

use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use super::ResponseFuture;
use crate::Attempt;

/// Puts each attempt in a `tracing` span named `deliver`, with the event's id, type, number,
/// destination, attempt and `traceparent`; says at its end how it went.
///
/// Success is said at `DEBUG`, what was not attempted at `DEBUG`, failures at `WARN`. Payloads are
/// never logged; of URLs, user info and query are left out.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TraceLayer;

impl TraceLayer {
    /// The layer.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Trace { inner }
    }
}

/// The service that [`TraceLayer`] makes. Ready when the inner service is.
#[derive(Debug, Clone)]
pub struct Trace<S> {
    inner: S,
}

impl<S, R> Service<R> for Trace<S>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let span = request.delivery().map_or_else(Span::none, span);
        let call = span.in_scope(|| self.inner.call(request));
        ResponseFuture::new(call, span, Instant::now())
    }
}

fn span(delivery: &outbox_core::Delivery) -> Span {
    let event = delivery.event();
    let span = tracing::debug_span!(
        "deliver",
        event_id = %event.id,
        event_type = event.event_type,
        seq = event.seq,
        attempt = delivery.attempt(),
        destination = tracing::field::Empty,
        traceparent = event.headers.get("traceparent"),
    );
    if !span.is_disabled() {
        span.record(
            "destination",
            outbox_core::shown_destination(&event.destination),
        );
    }
    span
}
