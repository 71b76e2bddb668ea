use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{Request, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::Body;
use outbox_core::Timer;
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use super::VerifyRequest;
use crate::receive::body::Limits;

/// Reads the body, has the request verified, and hands it on with the same bytes and a
/// [`Verified`](super::Verified) in its extensions.
///
/// What is refused never reaches the inner service: 401 without a reason (which is logged at `INFO`),
/// 413 for a body over the limit, 400 for one that breaks off, 503 where the verifier can't tell.
///
/// ```
/// # use outbox_tower::receive::VerifyRequest;
/// # fn app(verifier: impl VerifyRequest + 'static, app: axum::Router) -> axum::Router {
/// use outbox_tower::receive::VerifyLayer;
///
/// app.layer(VerifyLayer::new(verifier).body_limit(256 << 10))
/// # }
/// ```
pub struct VerifyLayer<V: ?Sized> {
    pub(super) verifier: Arc<V>,
    pub(super) limits: Limits,
}

impl<V: VerifyRequest> VerifyLayer<V> {
    /// Verifies with `verifier`.
    #[must_use]
    pub fn new(verifier: V) -> Self {
        Self::from_arc(Arc::new(verifier))
    }
}

impl<V: VerifyRequest + ?Sized> VerifyLayer<V> {
    /// Verifies with a shared verifier.
    #[must_use]
    pub fn from_arc(verifier: Arc<V>) -> Self {
        Self {
            verifier,
            limits: Limits::default(),
        }
    }

    /// The largest body, in bytes. Default: 1 MiB.
    #[must_use]
    pub const fn body_limit(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// The longest time to read the body in; a slower sender gets 408. Default: as long as the server
    /// waits.
    #[must_use]
    pub fn body_timeout(mut self, period: Duration, timer: impl Timer + 'static) -> Self {
        self.limits.time = Some((period, Arc::new(timer)));
        self
    }
}

impl<V: ?Sized> Clone for VerifyLayer<V> {
    fn clone(&self) -> Self {
        Self {
            verifier: Arc::clone(&self.verifier),
            limits: self.limits.clone(),
        }
    }
}

impl<V: ?Sized> fmt::Debug for VerifyLayer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyLayer")
            .field("body_limit", &self.limits.bytes)
            .finish_non_exhaustive()
    }
}

impl<S, V: ?Sized> Layer<S> for VerifyLayer<V> {
    type Service = Verify<S, V>;

    fn layer(&self, inner: S) -> Self::Service {
        Verify {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service that [`VerifyLayer`] makes. Always ready; the inner service is readied once the
/// request is verified.
pub struct Verify<S, V: ?Sized> {
    inner: S,
    layer: VerifyLayer<V>,
}

impl<S: Clone, V: ?Sized> Clone for Verify<S, V> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
        }
    }
}

impl<S, V: ?Sized> fmt::Debug for Verify<S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verify").finish_non_exhaustive()
    }
}

impl<S, V, B, RB> Service<Request<B>> for Verify<S, V>
where
    S: Service<Request<B>, Response = Response<RB>, Error: Send, Future: Send>
        + Clone
        + Send
        + 'static,
    V: VerifyRequest + ?Sized + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    RB: From<Bytes> + Send + 'static,
{
    type Response = Response<RB>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<RB>, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(super::run::run(
            self.layer.clone(),
            self.inner.clone(),
            request,
        ))
    }
}
