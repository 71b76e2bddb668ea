use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use outbox_core::DeliveryErrorKind;
use pin_project_lite::pin_project;
use tower::BoxError;

use super::layer::Handles;
use crate::classify::kind_of;

pin_project! {
    /// The inner call, counted at its end.
    pub struct ResponseFuture<F> {
        #[pin]
        call: F,
        meter: Meter,
    }
}

/// Counts an attempt as dropped unless it is told otherwise.
struct Meter {
    handles: Arc<Handles>,
    began: Instant,
    ended: bool,
}

impl<F> ResponseFuture<F> {
    pub(super) fn new(call: F, handles: Arc<Handles>) -> Self {
        handles.in_flight.increment(1.0);
        let meter = Meter {
            handles,
            began: Instant::now(),
            ended: false,
        };
        Self { call, meter }
    }
}

impl Meter {
    fn end(&mut self, failed: Option<DeliveryErrorKind>) {
        let handles = &self.handles;
        let counter = match failed {
            None => &handles.delivered,
            Some(DeliveryErrorKind::Throttled) => &handles.throttled,
            Some(DeliveryErrorKind::NotAttempted) => &handles.not_attempted,
            Some(DeliveryErrorKind::Permanent(_)) => &handles.permanent,
            Some(_) => &handles.transient,
        };
        counter.increment(1);
        handles.seconds.record(self.began.elapsed());
        self.ended = true;
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.handles.in_flight.decrement(1.0);
        if !self.ended {
            self.handles.dropped.increment(1);
        }
    }
}

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.call.poll(cx)).map_err(Into::into);
        this.meter
            .end(result.as_ref().err().map(|error| kind_of(&**error)));
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
