use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::Response;
use outbox_core::{Delivery, DeliveryError, Phase, Receipt};
use pin_project_lite::pin_project;
use tower::BoxError;

use super::service::FromHead;

pin_project! {
    /// The request, until the head of its answer.
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProject]
    enum State<F> {
        Refused { error: Option<DeliveryError> },
        Calling { #[pin] call: F, delivery: Delivery, answer: FromHead },
    }
}

impl<F> ResponseFuture<F> {
    pub(super) const fn refused(error: DeliveryError) -> Self {
        let state = State::Refused { error: Some(error) };
        Self { state }
    }

    pub(super) const fn calling(call: F, delivery: Delivery, answer: FromHead) -> Self {
        let state = State::Calling {
            call,
            delivery,
            answer,
        };
        Self { state }
    }
}

impl<F, RB, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Receipt, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProject::Refused { error } => Poll::Ready(Err(match error.take() {
                Some(error) => error.into(),
                None => "polled after it had ended".into(),
            })),
            StateProject::Calling {
                call,
                delivery,
                answer,
            } => {
                let response = ready!(call.poll(cx)).map_err(Into::into)?;
                delivery.advance(Phase::Answered);
                let (head, _body) = response.into_parts();
                Poll::Ready(answer(&head).map_err(Into::into))
            }
        }
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
