use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use super::DeadlineExceeded;
use crate::Attempt;
use crate::call::Call;

pin_project! {
    /// The inner call, or the end of the deadline.
    pub struct ResponseFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        call: Call<S, R>,
        sleep: BoxFuture<'static, ()>,
    }
}

impl<S, R> ResponseFuture<S, R>
where
    S: Service<R>,
    R: Attempt,
{
    pub(super) fn new(service: S, request: R, sleep: BoxFuture<'static, ()>) -> Self {
        let call = Call::new(service, request);
        Self { call, sleep }
    }
}

/// A response, and what is left of the deadline.
#[cfg(feature = "http")]
type WithRest<T> = (T, BoxFuture<'static, ()>);

#[cfg(feature = "http")]
impl<S, R> ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
{
    /// Also hands out what is left of the deadline.
    pub(super) fn poll_with_rest(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<WithRest<S::Response>, BoxError>> {
        let this = self.project();
        if let Poll::Ready(result) = this.call.poll(cx) {
            let rest = std::mem::replace(this.sleep, Box::pin(std::future::pending()));
            return Poll::Ready(result.map(|response| (response, rest)));
        }
        this.sleep
            .as_mut()
            .poll(cx)
            .map(|()| Err(DeadlineExceeded.into()))
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.call.poll(cx) {
            return Poll::Ready(result);
        }
        this.sleep
            .as_mut()
            .poll(cx)
            .map(|()| Err(DeadlineExceeded.into()))
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
