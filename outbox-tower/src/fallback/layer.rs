use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use outbox_core::{DeathReason, DeliveryErrorKind};
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::ResponseFuture;
use crate::{Attempt, kind_of};

/// Sends a request to a second service where the first did not take it for sure: it was not
/// attempted (an open circuit, say), or is unroutable there.
///
/// After any other failure the first receiver may have the event, and sending it elsewhere too is a
/// decision of its own: [`when`](Self::when).
#[derive(Clone)]
pub struct FallbackLayer<F> {
    fallback: Arc<Mutex<F>>,
    when: When,
}

pub(super) type When = Arc<dyn Fn(&BoxError) -> bool + Send + Sync>;

impl<F> FallbackLayer<F> {
    /// Falls back to `fallback`.
    #[must_use]
    pub fn new(fallback: F) -> Self {
        Self {
            fallback: Arc::new(Mutex::new(fallback)),
            when: Arc::new(untaken),
        }
    }

    /// Falls back on errors that this says yes to.
    #[must_use]
    pub fn when(mut self, when: impl Fn(&BoxError) -> bool + Send + Sync + 'static) -> Self {
        self.when = Arc::new(when);
        self
    }
}

fn untaken(error: &BoxError) -> bool {
    matches!(
        kind_of(&**error),
        DeliveryErrorKind::NotAttempted | DeliveryErrorKind::Permanent(DeathReason::Unroutable)
    )
}

impl<S, F> Layer<S> for FallbackLayer<F> {
    type Service = Fallback<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        Fallback {
            inner,
            fallback: Arc::clone(&self.fallback),
            when: Arc::clone(&self.when),
        }
    }
}

impl<F> fmt::Debug for FallbackLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackLayer").finish_non_exhaustive()
    }
}

/// The service that [`FallbackLayer`] makes. Always ready; each service is readied before it is
/// called.
pub struct Fallback<S, F> {
    inner: S,
    fallback: Arc<Mutex<F>>,
    when: When,
}

impl<S: Clone, F> Clone for Fallback<S, F> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            fallback: Arc::clone(&self.fallback),
            when: Arc::clone(&self.when),
        }
    }
}

impl<S, F, R> Service<R> for Fallback<S, F>
where
    S: Service<R, Error: Into<BoxError>> + Clone,
    F: Service<R, Response = S::Response, Error: Into<BoxError>> + Clone,
    R: Attempt + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, F, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let fallback = self
            .fallback
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        ResponseFuture::new(
            self.inner.clone(),
            fallback,
            request,
            Arc::clone(&self.when),
        )
    }
}

impl<S, F> fmt::Debug for Fallback<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback").finish_non_exhaustive()
    }
}
