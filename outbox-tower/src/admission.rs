//! What limits and circuits share: a call that is let in, that waits to be, or that is refused.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use crate::attempt::{Attempt, waiting};
use crate::call::Call;

/// What a call was let in with. It is kept until the call's answer.
pub trait Pass<T> {
    /// The call has come to this end. A call that is dropped comes to none, and its pass is dropped
    /// with it.
    fn ended(self, outcome: Result<&T, &BoxError>);
}

impl<T> Pass<T> for () {
    fn ended(self, _: Result<&T, &BoxError>) {}
}

/// What a limit says to a call.
pub(crate) enum Admission<P> {
    Granted(P),
    Waits(BoxFuture<'static, Result<P, BoxError>>),
    Refused(BoxError),
}

pin_project! {
    /// Waits for its place where that is allowed, then for the inner service.
    ///
    /// Dropping it gives its place in the queue, or what it holds, to the next; while it waits it uses
    /// up nothing.
    pub struct Admitted<S, R, P>
    where
        S: Service<R>,
    {
        #[pin]
        state: State<S, R, P>,
    }
}

pin_project! {
    #[project = StateProject]
    enum State<S, R, P>
    where
        S: Service<R>,
    {
        Refused { error: Option<BoxError> },
        Waiting { place: BoxFuture<'static, Result<P, BoxError>>, ready: Option<(S, R)> },
        Calling { #[pin] call: Call<S, R>, pass: Option<P> },
    }
}

impl<S, R, P> State<S, R, P>
where
    S: Service<R>,
    R: Attempt,
{
    fn calling(service: S, request: R, pass: P) -> Self {
        Self::Calling {
            call: Call::new(service, request),
            pass: Some(pass),
        }
    }
}

impl<S, R, P> Admitted<S, R, P>
where
    S: Service<R>,
    R: Attempt,
{
    pub(crate) fn new(admission: Admission<P>, service: S, request: R) -> Self {
        let state = match admission {
            Admission::Granted(pass) => State::calling(service, request, pass),
            Admission::Waits(place) => {
                waiting(&request);
                State::Waiting {
                    place,
                    ready: Some((service, request)),
                }
            }
            Admission::Refused(error) => State::Refused { error: Some(error) },
        };
        Self { state }
    }
}

impl<S, R, P> Future for Admitted<S, R, P>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
    P: Pass<S::Response>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = || "polled after it had ended".into();
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProject::Refused { error } => {
                    return Poll::Ready(Err(error.take().unwrap_or_else(ended)));
                }
                StateProject::Waiting { place, ready } => {
                    match (ready!(place.as_mut().poll(cx)), ready.take()) {
                        (Ok(pass), Some((service, request))) => {
                            State::calling(service, request, pass)
                        }
                        (Ok(_), None) => State::Refused { error: None },
                        (Err(error), _) => State::Refused { error: Some(error) },
                    }
                }
                StateProject::Calling { call, pass } => {
                    let result = ready!(call.poll(cx));
                    if let Some(pass) = pass.take() {
                        pass.ended(result.as_ref());
                    }
                    return Poll::Ready(result);
                }
            };
            state.set(next);
        }
    }
}

impl<S: Service<R>, R, P> fmt::Debug for Admitted<S, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").finish_non_exhaustive()
    }
}
