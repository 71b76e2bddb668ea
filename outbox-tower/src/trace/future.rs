use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use outbox_core::DeliveryErrorKind;
use pin_project_lite::pin_project;
use tower::BoxError;
use tracing::Span;

use crate::classify::kind_of;

pin_project! {
    /// The inner call, in its span.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        call: F,
        span: Span,
        began: Instant,
    }
}

impl<F> ResponseFuture<F> {
    pub(super) const fn new(call: F, span: Span, began: Instant) -> Self {
        Self { call, span, began }
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
        let _entered = this.span.enter();
        let result = ready!(this.call.poll(cx)).map_err(Into::into);
        let took = this.began.elapsed();
        match result.as_ref().map_err(|error| kind_of(&**error)) {
            Ok(_) => tracing::debug!(?took, "delivered"),
            Err(DeliveryErrorKind::NotAttempted) => tracing::debug!(?took, "not attempted"),
            Err(kind) => tracing::warn!(?took, ?kind, "attempt failed"),
        }
        Poll::Ready(result)
    }
}
