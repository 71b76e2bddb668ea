use std::sync::Arc;
use std::task::{Context, Poll};

use metrics::{Counter, Histogram, Label, counter, gauge, histogram};
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::ResponseFuture;

/// Counts attempts by outcome, times them, and shows how many are in flight, through the `metrics`
/// facade:
///
/// | metric | kind | labels |
/// |---|---|---|
/// | `outbox_tower_attempts_total` | counter | `outcome`: `delivered`, `transient`, `throttled`, `not_attempted`, `permanent`, `dropped` |
/// | `outbox_tower_attempt_seconds` | histogram | the layer's |
/// | `outbox_tower_attempts_in_flight` | gauge | the layer's |
///
/// There is no label for the destination, whose values have no bound: give each stack
/// [a label](Self::label) instead. Handles are made once, where the layer is built: install the
/// recorder before.
#[derive(Clone)]
pub struct MetricsLayer {
    labels: Vec<Label>,
}

impl MetricsLayer {
    /// Metrics without labels of their own.
    #[must_use]
    pub const fn new() -> Self {
        Self { labels: Vec::new() }
    }

    /// Adds a label with a fixed value.
    #[must_use]
    pub fn label(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.labels.push(Label::new(name, value.into()));
        self
    }
}

impl Default for MetricsLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for MetricsLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricsLayer")
            .field("labels", &self.labels)
            .finish()
    }
}

/// The handles of one service.
pub(super) struct Handles {
    pub(super) delivered: Counter,
    pub(super) transient: Counter,
    pub(super) throttled: Counter,
    pub(super) not_attempted: Counter,
    pub(super) permanent: Counter,
    pub(super) dropped: Counter,
    pub(super) seconds: Histogram,
    pub(super) in_flight: metrics::Gauge,
}

impl Handles {
    fn new(labels: &[Label]) -> Self {
        let attempts = |outcome: &'static str| {
            let mut labels = labels.to_vec();
            labels.push(Label::from_static_parts("outcome", outcome));
            counter!("outbox_tower_attempts_total", labels)
        };
        Self {
            delivered: attempts("delivered"),
            transient: attempts("transient"),
            throttled: attempts("throttled"),
            not_attempted: attempts("not_attempted"),
            permanent: attempts("permanent"),
            dropped: attempts("dropped"),
            seconds: histogram!("outbox_tower_attempt_seconds", labels.to_vec()),
            in_flight: gauge!("outbox_tower_attempts_in_flight", labels.to_vec()),
        }
    }
}

impl<S> Layer<S> for MetricsLayer {
    type Service = Metrics<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Metrics {
            inner,
            handles: Arc::new(Handles::new(&self.labels)),
        }
    }
}

/// The service that [`MetricsLayer`] makes. Ready when the inner service is.
#[derive(Clone)]
pub struct Metrics<S> {
    inner: S,
    handles: Arc<Handles>,
}

impl<S: std::fmt::Debug> std::fmt::Debug for Metrics<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S, R> Service<R> for Metrics<S>
where
    S: Service<R, Error: Into<BoxError>>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        ResponseFuture::new(self.inner.call(request), Arc::clone(&self.handles))
    }
}
