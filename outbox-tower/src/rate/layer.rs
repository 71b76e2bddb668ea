use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use outbox_core::Timer;
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::gauge::Gauge;
use super::{Rate, RateLimited};
use crate::admission::{Admission, Admitted};
use crate::clock::Clock;
use crate::{Attempt, KeyOf};

/// Limits the attempts per key and time.
///
/// All services that one layer, or its clones, made share the rates.
#[derive(Clone)]
pub struct RateLayer<K> {
    rate: Rate,
    key_of: K,
    wait: Option<(Duration, Arc<dyn Timer>)>,
    gauge: Arc<Gauge>,
}

impl<K> RateLayer<K> {
    /// At most `rate` for each key.
    #[must_use]
    pub fn new(rate: Rate, key_of: K) -> Self {
        Self {
            rate,
            key_of,
            wait: None,
            gauge: Arc::new(Gauge::new(rate, Clock::System)),
        }
    }

    /// Waits up to `max_wait` for the rate to allow an attempt before it refuses, by this timer's
    /// clock. Default: not at all.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration, timer: impl Timer + 'static) -> Self {
        let timer: Arc<dyn Timer> = Arc::new(timer);
        let clock = Clock::Timer(Arc::clone(&timer));
        self.gauge = Arc::new(Gauge::new(self.rate, clock));
        self.wait = Some((max_wait, timer));
        self
    }

    /// How many keys have state.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.gauge.keys()
    }
}

impl<S, K: Clone> Layer<S> for RateLayer<K> {
    type Service = RateLimit<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit {
            inner,
            layer: self.clone(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for RateLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLayer")
            .field("rate", &self.rate)
            .field("key_of", &self.key_of)
            .finish_non_exhaustive()
    }
}

/// The service that [`RateLayer`] makes. Always ready; the inner service is readied once the rate
/// allows the attempt.
#[derive(Debug, Clone)]
pub struct RateLimit<S, K> {
    inner: S,
    layer: RateLayer<K>,
}

impl<S, K, R> Service<R> for RateLimit<S, K>
where
    S: Service<R, Error: Into<BoxError>> + Clone,
    K: KeyOf<R>,
    R: Attempt,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Admitted<S, R, ()>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let admission = self.layer.admit(&request);
        Admitted::new(admission, self.inner.clone(), request)
    }
}

impl<K> RateLayer<K> {
    fn admit<R>(&self, request: &R) -> Admission<()>
    where
        K: KeyOf<R>,
    {
        let key = self.key_of.key(request);
        match (self.gauge.take(&key), &self.wait) {
            (Ok(()), _) => Admission::Granted(()),
            (Err(wait), Some((max_wait, timer))) if wait <= *max_wait => {
                let turn = Turn {
                    gauge: Arc::clone(&self.gauge),
                    until: timer.now().checked_add(*max_wait),
                    key: key.into_owned(),
                    timer: Arc::clone(timer),
                };
                let first = turn.timer.sleep(wait);
                Admission::Waits(Box::pin(turn.comes(first)))
            }
            (Err(wait), _) => Admission::Refused(RateLimited::new(wait).into()),
        }
    }
}

/// Waits for the rate to allow an attempt.
struct Turn {
    gauge: Arc<Gauge>,
    key: String,
    /// `None` is later than the clock can tell.
    until: Option<Instant>,
    timer: Arc<dyn Timer>,
}

impl Turn {
    async fn comes(self, first: BoxFuture<'static, ()>) -> Result<(), BoxError> {
        first.await;
        while let Err(longer) = self.gauge.take(&self.key) {
            let turn = self.timer.now().checked_add(longer);
            if self
                .until
                .is_some_and(|until| turn.is_none_or(|turn| turn > until))
            {
                return Err(RateLimited::new(longer).into());
            }
            self.timer.sleep(longer).await;
        }
        Ok(())
    }
}
