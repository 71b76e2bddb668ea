use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use outbox_core::Timer;
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::ResponseFuture;
use crate::Attempt;

/// Ends calls that take longer than a period, readiness included.
///
/// ```
/// # use std::time::Duration;
/// use outbox_core::TokioTimer;
/// use outbox_tower::deadline::DeadlineLayer;
///
/// let layer = DeadlineLayer::new(Duration::from_secs(15), TokioTimer);
/// ```
#[derive(Clone)]
pub struct DeadlineLayer {
    period: Duration,
    timer: Arc<dyn Timer>,
}

impl DeadlineLayer {
    /// Ends calls after `period`.
    #[must_use]
    pub fn new(period: Duration, timer: impl Timer + 'static) -> Self {
        Self {
            period,
            timer: Arc::new(timer),
        }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Deadline {
            inner,
            layer: self.clone(),
        }
    }
}

impl fmt::Debug for DeadlineLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineLayer")
            .field("period", &self.period)
            .finish_non_exhaustive()
    }
}

/// The service that [`DeadlineLayer`] makes. Always ready; the inner service is readied under the
/// deadline.
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
    layer: DeadlineLayer,
}

impl<S, R> Service<R> for Deadline<S>
where
    S: Service<R, Error: Into<BoxError>> + Clone,
    R: Attempt,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let sleep = self.layer.timer.sleep(self.layer.period);
        ResponseFuture::new(self.inner.clone(), request, sleep)
    }
}
