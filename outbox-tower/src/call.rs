//! Readying a service and calling it, in one future.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use crate::attempt::{Attempt, calling, waiting};

pin_project! {
    /// Readies its own copy of a service, then calls it: the one copy that was ready is the one that
    /// is called. The attempt counts as waiting until the call.
    pub(crate) struct Call<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        state: State<S, R, S::Future>,
    }
}

pin_project! {
    #[project = StateProject]
    enum State<S, R, F> {
        NotReady { service: S, request: Option<R> },
        Called { #[pin] future: F },
    }
}

impl<S, R> Call<S, R>
where
    S: Service<R>,
    R: Attempt,
{
    pub(crate) fn new(service: S, request: R) -> Self {
        waiting(&request);
        let request = Some(request);
        Self {
            state: State::NotReady { service, request },
        }
    }
}

impl<S, R> Future for Call<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let future = match state.as_mut().project() {
                StateProject::NotReady { service, request } => {
                    ready!(service.poll_ready(cx)).map_err(NotReady::boxed)?;
                    let Some(request) = request.take() else {
                        return Poll::Ready(Err("polled after it had ended".into()));
                    };
                    calling(&request);
                    service.call(request)
                }
                StateProject::Called { future } => return future.poll(cx).map_err(Into::into),
            };
            state.set(State::Called { future });
        }
    }
}

impl<S, R> fmt::Debug for Call<S, R>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// A service failed before it was called: nothing was attempted. The cause is in
/// [`source`](std::error::Error::source).
#[derive(Debug)]
pub struct NotReady {
    source: BoxError,
}

impl NotReady {
    pub(crate) fn boxed(source: impl Into<BoxError>) -> BoxError {
        Box::new(Self {
            source: source.into(),
        })
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service is not ready")
    }
}

impl std::error::Error for NotReady {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
