use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use super::registry::Permit;
use super::{CircuitOpen, Judge};
use crate::Attempt;
use crate::call::Call;

pin_project! {
    /// Calls the inner service and tells the circuit what came of it.
    ///
    /// Dropping it gives a probe's place back.
    pub struct ResponseFuture<S, R, J>
    where
        S: Service<R>,
    {
        #[pin]
        state: State<S, R, J>,
    }
}

pin_project! {
    #[project = StateProject]
    enum State<S, R, J>
    where
        S: Service<R>,
    {
        Refused { open: Option<CircuitOpen> },
        Calling { #[pin] call: Call<S, R>, judge: J, permit: Option<Permit> },
    }
}

impl<S, R, J> ResponseFuture<S, R, J>
where
    S: Service<R>,
    R: Attempt,
{
    pub(super) fn admitted(permit: Permit, judge: J, service: S, request: R) -> Self {
        let state = State::Calling {
            call: Call::new(service, request),
            judge,
            permit: Some(permit),
        };
        Self { state }
    }

    pub(super) const fn refused(open: CircuitOpen) -> Self {
        let state = State::Refused { open: Some(open) };
        Self { state }
    }
}

impl<S, R, J> Future for ResponseFuture<S, R, J>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
    J: Judge<S::Response>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProject::Refused { open } => Poll::Ready(Err(match open.take() {
                Some(open) => open.into(),
                None => "polled after it had ended".into(),
            })),
            StateProject::Calling {
                call,
                judge,
                permit,
            } => {
                let result = ready!(call.poll(cx));
                if let Some(permit) = permit.take() {
                    permit.finish(judge.judge(result.as_ref()));
                }
                Poll::Ready(result)
            }
        }
    }
}

impl<S: Service<R>, R, J> fmt::Debug for ResponseFuture<S, R, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
