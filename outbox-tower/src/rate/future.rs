use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use outbox_core::Timer;
use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use super::RateLimited;
use super::gauge::Gauge;
use crate::Attempt;
use crate::attempt::waiting;
use crate::call::Call;

pin_project! {
    /// Waits for the rate where that is allowed, then for the inner service.
    ///
    /// Dropping it while it waits uses up nothing.
    pub struct ResponseFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        state: State<S, R>,
    }
}

pin_project! {
    #[project = StateProject]
    enum State<S, R>
    where
        S: Service<R>,
    {
        Refused { retry_after: Duration },
        Waiting {
            wait: Wait,
            sleep: BoxFuture<'static, ()>,
            ready: Option<(S, R)>,
        },
        Calling { #[pin] call: Call<S, R> },
    }
}

struct Wait {
    gauge: Arc<Gauge>,
    key: String,
    until: Instant,
    timer: Arc<dyn Timer>,
}

impl<S, R> ResponseFuture<S, R>
where
    S: Service<R>,
    R: Attempt,
{
    pub(super) fn calling(service: S, request: R) -> Self {
        let call = Call::new(service, request);
        Self {
            state: State::Calling { call },
        }
    }

    pub(super) const fn refused(retry_after: Duration) -> Self {
        Self {
            state: State::Refused { retry_after },
        }
    }

    pub(super) fn waiting(
        gauge: Arc<Gauge>,
        key: String,
        until: Instant,
        timer: Arc<dyn Timer>,
        first: Duration,
        ready: (S, R),
    ) -> Self {
        waiting(&ready.1);
        let sleep = timer.sleep(first);
        let wait = Wait {
            gauge,
            key,
            until,
            timer,
        };
        Self {
            state: State::Waiting {
                wait,
                sleep,
                ready: Some(ready),
            },
        }
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R, Error: Into<BoxError>>,
    R: Attempt,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProject::Refused { retry_after } => {
                    return Poll::Ready(Err(RateLimited::new(*retry_after).into()));
                }
                StateProject::Waiting { wait, sleep, ready } => {
                    ready!(sleep.as_mut().poll(cx));
                    match wait.gauge.take(&wait.key) {
                        Ok(()) => match ready.take() {
                            Some((service, request)) => State::Calling {
                                call: Call::new(service, request),
                            },
                            None => return Poll::Ready(Err("polled after it had ended".into())),
                        },
                        Err(longer) if wait.timer.now() + longer <= wait.until => {
                            *sleep = wait.timer.sleep(longer);
                            continue;
                        }
                        Err(longer) => State::Refused {
                            retry_after: longer,
                        },
                    }
                }
                StateProject::Calling { call } => return call.poll(cx),
            };
            state.set(next);
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
