use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use super::layer::When;
use crate::Attempt;
use crate::call::Call;

pin_project! {
    /// The first call, and the second where it is needed.
    pub struct ResponseFuture<S, F, R>
    where
        S: Service<R>,
        F: Service<R>,
    {
        #[pin]
        state: State<S, F, R>,
        spare: Option<(F, R)>,
        when: When,
    }
}

pin_project! {
    #[project = StateProject]
    enum State<S, F, R>
    where
        S: Service<R>,
        F: Service<R>,
    {
        First { #[pin] call: Call<S, R> },
        Second { #[pin] call: Call<F, R> },
    }
}

impl<S, F, R> ResponseFuture<S, F, R>
where
    S: Service<R>,
    F: Service<R>,
    R: Attempt + Clone,
{
    pub(super) fn new(service: S, fallback: F, request: R, when: When) -> Self {
        let spare = Some((fallback, request.clone()));
        let call = Call::new(service, request);
        Self {
            state: State::First { call },
            spare,
            when,
        }
    }
}

impl<S, F, R> Future for ResponseFuture<S, F, R>
where
    S: Service<R, Error: Into<BoxError>>,
    F: Service<R, Response = S::Response, Error: Into<BoxError>>,
    R: Attempt,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let call = match this.state.as_mut().project() {
                StateProject::First { call } => match ready!(call.poll(cx)) {
                    Err(error) if (this.when)(&error) => match this.spare.take() {
                        Some((fallback, request)) => Call::new(fallback, request),
                        None => return Poll::Ready(Err(error)),
                    },
                    result => return Poll::Ready(result),
                },
                StateProject::Second { call } => return call.poll(cx),
            };
            this.state.set(State::Second { call });
        }
    }
}

impl<S: Service<R>, F: Service<R>, R> fmt::Debug for ResponseFuture<S, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
