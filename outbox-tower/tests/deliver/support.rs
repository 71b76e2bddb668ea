//! Deliveries, and services that behave badly.

use std::convert::Infallible;
use std::future::Ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{Request, Response};
use futures::future::BoxFuture;
use outbox_core::mock::event;
use outbox_core::{
    Delivery, DeliveryError, DeliveryErrorKind, Phase, Receipt, Transport, async_trait,
};
use tokio::sync::Semaphore;
use tower::Service;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn delivery_to(destination: &str) -> Delivery {
    let mut event = event();
    event.destination = destination.to_owned();
    Delivery::new(Arc::new(event), 30 * SECOND)
}

pub(crate) fn delivery() -> Delivery {
    delivery_to("somewhere")
}

/// Panics when it is called without having been ready, is pending at first, and forgets its
/// readiness when it is cloned: what the contract of `Service` allows.
#[derive(Debug, Default)]
pub(crate) struct Picky {
    polls: usize,
    ready: bool,
}

impl Clone for Picky {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Picky {
    fn poll_often(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.polls += 1;
        if self.polls.is_multiple_of(3) {
            self.ready = true;
        }
        if self.ready {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<B> Service<Request<B>> for Picky {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.poll_often(cx).map(Ok)
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called unready");
        std::future::ready(Ok(Response::default()))
    }
}

impl Service<Delivery> for Picky {
    type Response = Receipt;
    type Error = DeliveryError;
    type Future = Ready<Result<Receipt, DeliveryError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DeliveryError>> {
        self.poll_often(cx).map(Ok)
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called unready");
        assert_eq!(delivery.phase(), Phase::Sending, "handed over");
        std::future::ready(Ok(Receipt::new()))
    }
}

/// Never ready.
#[derive(Debug, Clone)]
pub(crate) struct Never;

impl Service<Delivery> for Never {
    type Response = Receipt;
    type Error = DeliveryError;
    type Future = Ready<Result<Receipt, DeliveryError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DeliveryError>> {
        Poll::Pending
    }

    fn call(&mut self, _: Delivery) -> Self::Future {
        panic!("called unready")
    }
}

/// Fails in `poll_ready`.
#[derive(Debug, Clone)]
pub(crate) struct Broken;

impl Service<Delivery> for Broken {
    type Response = Receipt;
    type Error = std::io::Error;
    type Future = Ready<Result<Receipt, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Err(std::io::Error::other("no connection")))
    }

    fn call(&mut self, _: Delivery) -> Self::Future {
        panic!("called unready")
    }
}

/// A transport whose deliveries end when they are let go, one permit each.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    gate: Arc<Semaphore>,
    pub(crate) calls: Arc<AtomicUsize>,
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) most: Arc<AtomicUsize>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            calls: Arc::default(),
            running: Arc::default(),
            most: Arc::default(),
        }
    }

    pub(crate) fn open(&self, deliveries: usize) {
        self.gate.add_permits(deliveries);
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Transport for Gate {
    async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let _running = Running(Arc::clone(&self.running));
        self.gate.acquire().await.unwrap().forget();
        Ok(Receipt::new())
    }
}

/// A transport that fails as it is told, for each destination.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moody {
    pub(crate) calls: Arc<AtomicUsize>,
}

impl Moody {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Transport for Moody {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match delivery.event().destination.as_str() {
            "down" => Err(DeliveryError::transient("down").with_phase(Phase::Waiting)),
            "gone" => Err(DeliveryError::gone("410")),
            "unroutable" => Err(DeliveryError::unroutable("no such topic")),
            "busy" => Err(DeliveryError::throttled("429").with_retry_after(7 * SECOND)),
            "panics" => panic!("a bug in the transport"),
            "hangs" => std::future::pending().await,
            _ => Ok(Receipt::new()),
        }
    }
}

/// Polls a delivery once; the future is dropped if it is not done.
pub(crate) async fn poll_once(
    future: &mut BoxFuture<'_, Result<Receipt, DeliveryError>>,
) -> Option<Result<Receipt, DeliveryError>> {
    futures::future::poll_immediate(future).await
}

pub(crate) fn kind(result: &Result<Receipt, DeliveryError>) -> Option<DeliveryErrorKind> {
    result.as_ref().err().map(DeliveryError::kind)
}

/// Ends when `condition` holds; fails after ten seconds of real time.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + 10 * SECOND;
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "waited in vain");
        tokio::task::yield_now().await;
    }
}
