//! One attempt in flight: the transport's future, here or in a task of its own.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{AbortHandle, BoxFuture, abortable};

use super::settings::later;
use crate::faults::{contained, contained_future};
use crate::{Claimed, Delivery, DeliveryError, Receipt, Spawn, Transport};

pub(super) type Delivered = Result<Receipt, DeliveryError>;

/// An attempt that has begun. Dropping it ends it.
pub(super) struct Attempt<'a> {
    body: Body<'a>,
    delivery: Delivery,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
}

enum Body<'a> {
    Here(BoxFuture<'a, Delivered>),
    Task(Task),
    Failed(Option<DeliveryError>),
}

struct Task {
    answer: oneshot::Receiver<Delivered>,
    abort: AbortHandle,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

impl<'a> Attempt<'a> {
    pub(super) fn begin(
        transport: &'a Arc<dyn Transport>,
        spawn: Option<&dyn Spawn>,
        claimed: &Claimed,
        timeout: Duration,
        now: Instant,
    ) -> Self {
        let delivery = Delivery::new(Arc::clone(&claimed.event), timeout);
        let body = match spawn {
            None => contained(|| transport.deliver(delivery.clone())).map(Body::Here),
            Some(spawn) => task(transport, spawn, delivery.clone()).map(Body::Task),
        };
        Self {
            body: body.unwrap_or_else(|panic| Body::Failed(Some(panicked(&panic)))),
            delivery,
            started: now,
            deadline: later(now, timeout),
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Delivered> {
        match &mut self.body {
            Body::Here(future) => match contained(|| future.as_mut().poll(cx)) {
                Ok(answer) => answer,
                Err(panic) => Poll::Ready(Err(panicked(&panic))),
            },
            Body::Task(task) => task.answer.poll_unpin(cx).map(|answer| {
                answer.unwrap_or_else(|_| {
                    Err(DeliveryError::transient("the delivery's task was dropped"))
                })
            }),
            Body::Failed(error) => Poll::Ready(Err(error
                .take()
                .unwrap_or_else(|| DeliveryError::transient("polled after its end")))),
        }
    }

    /// The phase to report a failure with.
    pub(super) fn phase(&self, error: &DeliveryError) -> crate::Phase {
        error.phase().unwrap_or_else(|| self.delivery.phase())
    }

    /// Drops what the transport left behind, within the panic boundary.
    pub(super) fn end(self) {
        let Self { body, .. } = self;
        let _ = contained(|| drop(body));
    }

    /// What a time-out says.
    pub(super) fn timed_out(&self) -> DeliveryError {
        let limit = self.delivery.timeout();
        DeliveryError::transient(format!("no answer within {limit:?}"))
            .with_phase(self.delivery.phase())
    }
}

fn task(
    transport: &Arc<dyn Transport>,
    spawn: &dyn Spawn,
    delivery: Delivery,
) -> Result<Task, String> {
    let transport = Arc::clone(transport);
    let (send, answer) = oneshot::channel();
    let (work, abort) = abortable(async move {
        let answer = contained_future(async { transport.deliver(delivery).await }).await;
        let answer = answer.unwrap_or_else(|panic| Err(panicked(&panic)));
        // The relay may have stopped listening.
        let _ = send.send(answer);
    });
    let work = contained_future(work).map(drop).boxed();
    contained(|| spawn.spawn(work))?;
    Ok(Task { answer, abort })
}

fn panicked(message: &str) -> DeliveryError {
    DeliveryError::transient(format!("the transport panicked: {message}"))
}
