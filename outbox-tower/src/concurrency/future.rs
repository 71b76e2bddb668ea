use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::BoxFuture;
use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use super::slots::{Asked, Slot};
use super::{ConcurrencyLayer, Saturated};
use crate::Attempt;
use crate::attempt::waiting;
use crate::call::Call;

pin_project! {
    /// Waits for a slot where that is allowed, then for the inner service.
    ///
    /// Dropping it gives its place in the queue, or its slot, to the next.
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
        Queued {
            place: oneshot::Receiver<Slot>,
            timeout: BoxFuture<'static, ()>,
            retry_after: Duration,
            ready: Option<(S, R)>,
        },
        Calling { #[pin] call: Call<S, R>, slot: Option<Slot> },
    }
}

impl<S, R> ResponseFuture<S, R>
where
    S: Service<R>,
    R: Attempt,
{
    pub(super) fn new<K>(
        asked: Asked,
        layer: &ConcurrencyLayer<K>,
        service: S,
        request: R,
    ) -> Self {
        let retry_after = layer.retry_after;
        let state = match (asked, &layer.wait) {
            (Asked::Free(slot), _) => State::Calling {
                call: Call::new(service, request),
                slot: Some(slot),
            },
            (Asked::Queued(place), Some((max_wait, timer))) => {
                waiting(&request);
                State::Queued {
                    place,
                    timeout: timer.sleep(*max_wait),
                    retry_after,
                    ready: Some((service, request)),
                }
            }
            _ => State::Refused { retry_after },
        };
        Self { state }
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
                    return Poll::Ready(Err(Saturated::new(*retry_after).into()));
                }
                StateProject::Queued {
                    place,
                    timeout,
                    retry_after,
                    ready,
                } => match Pin::new(place).poll(cx) {
                    Poll::Ready(Ok(slot)) => match ready.take() {
                        Some((service, request)) => State::Calling {
                            call: Call::new(service, request),
                            slot: Some(slot),
                        },
                        None => return Poll::Ready(Err("polled after it had ended".into())),
                    },
                    Poll::Ready(Err(_)) => State::Refused {
                        retry_after: *retry_after,
                    },
                    Poll::Pending => {
                        if timeout.as_mut().poll(cx).is_pending() {
                            return Poll::Pending;
                        }
                        State::Refused {
                            retry_after: *retry_after,
                        }
                    }
                },
                StateProject::Calling { call, slot } => {
                    let result = std::task::ready!(call.poll(cx));
                    drop(slot.take());
                    return Poll::Ready(result);
                }
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
