use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use outbox_core::DeliveryError;
use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use crate::Attempt;
use crate::call::Call;

pin_project! {
    /// The call of the chosen service.
    pub struct ResponseFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        call: Option<Call<S, R>>,
    }
}

impl<S, R> ResponseFuture<S, R>
where
    S: Service<R>,
    R: Attempt,
{
    pub(super) fn to(service: S, request: R) -> Self {
        let call = Some(Call::new(service, request));
        Self { call }
    }

    pub(super) const fn nowhere() -> Self {
        Self { call: None }
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().call.as_pin_mut() {
            Some(call) => call.poll(cx),
            None => Poll::Ready(Err(DeliveryError::unroutable("no route").into())),
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
