use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::{Request, Response};
use outbox_core::Timer;
use pin_project_lite::pin_project;
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::layer::{Deadline, DeadlineLayer};
use super::{DeadlineBody, ResponseFuture};

/// [`DeadlineLayer`] for services of `http::Request`: the body of the answer is under the deadline
/// too, and fails when it passes.
#[derive(Debug, Clone)]
pub struct HttpDeadlineLayer {
    inner: DeadlineLayer,
}

impl HttpDeadlineLayer {
    /// Ends calls, and the bodies of their answers, after `period`.
    #[must_use]
    pub fn new(period: Duration, timer: impl Timer + 'static) -> Self {
        Self {
            inner: DeadlineLayer::new(period, timer),
        }
    }
}

impl<S> Layer<S> for HttpDeadlineLayer {
    type Service = HttpDeadline<S>;

    fn layer(&self, inner: S) -> Self::Service {
        HttpDeadline {
            inner: self.inner.layer(inner),
        }
    }
}

/// The service that [`HttpDeadlineLayer`] makes.
#[derive(Debug, Clone)]
pub struct HttpDeadline<S> {
    inner: Deadline<S>,
}

impl<S, B, RB> Service<Request<B>> for HttpDeadline<S>
where
    S: Service<Request<B>, Response = Response<RB>, Error: Into<BoxError>> + Clone,
{
    type Response = Response<DeadlineBody<RB>>;
    type Error = BoxError;
    type Future = HttpResponseFuture<S, Request<B>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        HttpResponseFuture {
            inner: self.inner.call(request),
        }
    }
}

pin_project! {
    /// The inner call, or the end of the deadline.
    pub struct HttpResponseFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        inner: ResponseFuture<S, R>,
    }
}

impl<S, B, RB> Future for HttpResponseFuture<S, Request<B>>
where
    S: Service<Request<B>, Response = Response<RB>, Error: Into<BoxError>>,
{
    type Output = Result<Response<DeadlineBody<RB>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, rest) = ready!(self.project().inner.poll_with_rest(cx))?;
        Poll::Ready(Ok(response.map(|body| DeadlineBody::new(body, rest))))
    }
}

impl<S: Service<R>, R> fmt::Debug for HttpResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponseFuture").finish_non_exhaustive()
    }
}
