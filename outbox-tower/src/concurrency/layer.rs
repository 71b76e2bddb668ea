use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::future::{self, BoxFuture, Either};
use outbox_core::Timer;
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::Saturated;
use super::slots::{Asked, Slot, Slots};
use crate::admission::{Admission, Admitted};
use crate::{Attempt, KeyOf};

/// Limits the attempts per key that are in flight at once.
///
/// All services that one layer, or its clones, made share the slots.
#[derive(Clone)]
pub struct ConcurrencyLayer<K> {
    limit: usize,
    key_of: K,
    retry_after: Duration,
    wait: Option<(Duration, Arc<dyn Timer>)>,
    slots: Slots,
}

impl<K> ConcurrencyLayer<K> {
    /// At most `limit` attempts at once for each key; at least 1.
    #[must_use]
    pub fn new(limit: usize, key_of: K) -> Self {
        Self {
            limit: limit.max(1),
            key_of,
            retry_after: Duration::from_millis(250),
            wait: None,
            slots: Slots::new(),
        }
    }

    /// What a refused attempt is told to wait. Default: 250 ms.
    #[must_use]
    pub const fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Waits up to `max_wait` for a slot, first come first served, before it refuses. Default: not
    /// at all.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration, timer: impl Timer + 'static) -> Self {
        self.wait = Some((max_wait, Arc::new(timer)));
        self
    }

    /// How many keys have state: those with attempts in flight, and some that had them lately.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.slots.keys()
    }
}

impl<S, K: Clone> Layer<S> for ConcurrencyLayer<K> {
    type Service = Concurrency<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        Concurrency {
            inner,
            layer: self.clone(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for ConcurrencyLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLayer")
            .field("limit", &self.limit)
            .field("key_of", &self.key_of)
            .finish_non_exhaustive()
    }
}

/// The service that [`ConcurrencyLayer`] makes. Always ready; the inner service is readied once
/// there is a slot.
#[derive(Debug, Clone)]
pub struct Concurrency<S, K> {
    inner: S,
    layer: ConcurrencyLayer<K>,
}

impl<S, K, R> Service<R> for Concurrency<S, K>
where
    S: Service<R, Error: Into<BoxError>> + Clone,
    K: KeyOf<R>,
    R: Attempt,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Admitted<S, R, Slot>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let layer = &self.layer;
        let asked = layer.slots.ask(
            &layer.key_of.key(&request),
            layer.limit,
            layer.wait.is_some(),
            Instant::now(),
        );
        let refused = Saturated::new(layer.retry_after);
        let admission = match (asked, &layer.wait) {
            (Asked::Free(slot), _) => Admission::Granted(slot),
            (Asked::Queued(place), Some((max_wait, timer))) => {
                let timeout = timer.sleep(*max_wait);
                Admission::Waits(Box::pin(queued(place, timeout, refused)))
            }
            _ => Admission::Refused(refused.into()),
        };
        Admitted::new(admission, self.inner.clone(), request)
    }
}

async fn queued(
    place: oneshot::Receiver<Slot>,
    timeout: BoxFuture<'static, ()>,
    refused: Saturated,
) -> Result<Slot, BoxError> {
    match future::select(place, timeout).await {
        Either::Left((Ok(slot), _)) => Ok(slot),
        _ => Err(refused.into()),
    }
}
