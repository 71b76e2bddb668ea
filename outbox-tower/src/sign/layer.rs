use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use ::http::Request;
use ::http::header::{HeaderName, HeaderValue};
use bytes::Bytes;
use futures::future::BoxFuture;
use outbox_core::{DeliveryError, ErrorKind, Phase, SignatureHeader, Signer, SigningInput};
use tower::BoxError;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Call;

/// Adds the headers of a [`Signer`] to requests whose body is the whole payload, and hands them on
/// with a body `B`.
///
/// Requests must carry their delivery in the extensions, as
/// [`HttpService`](crate::http::HttpService) makes them: its event's id is signed. A key service that
/// can't answer means *not attempted*; any other error of the signer fails the attempt.
pub struct SignLayer<G, B = Bytes> {
    signer: Arc<G>,
    now: Now,
    body: PhantomData<fn() -> B>,
}

type Now = Arc<dyn Fn() -> SystemTime + Send + Sync>;

impl<G: Signer, B> SignLayer<G, B> {
    /// Signs with `signer`, by the system's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the clock unless one is given")]
    pub fn new(signer: G) -> Self {
        Self {
            signer: Arc::new(signer),
            now: Arc::new(SystemTime::now),
            body: PhantomData,
        }
    }

    /// Takes the time from here.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }
}

impl<S, G, B> Layer<S> for SignLayer<G, B> {
    type Service = Sign<S, G, B>;

    fn layer(&self, inner: S) -> Self::Service {
        Sign {
            inner,
            layer: self.clone(),
        }
    }
}

impl<G, B> Clone for SignLayer<G, B> {
    fn clone(&self) -> Self {
        Self {
            signer: Arc::clone(&self.signer),
            now: Arc::clone(&self.now),
            body: PhantomData,
        }
    }
}

impl<G, B> fmt::Debug for SignLayer<G, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignLayer").finish_non_exhaustive()
    }
}

/// The service that [`SignLayer`] makes. Always ready; the inner service is readied once the request
/// is signed.
#[derive(Debug)]
pub struct Sign<S, G, B = Bytes> {
    inner: S,
    layer: SignLayer<G, B>,
}

impl<S: Clone, G, B> Clone for Sign<S, G, B> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
        }
    }
}

impl<S, G, B> Service<Request<Bytes>> for Sign<S, G, B>
where
    S: Service<Request<B>, Response: 'static, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    G: Signer + 'static,
    B: From<Bytes> + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Bytes>) -> Self::Future {
        let inner = self.inner.clone();
        let layer = self.layer.clone();
        Box::pin(async move {
            let headers = layer.sign(&request).await?;
            for header in headers {
                let (name, value) = checked(&header)?;
                request.headers_mut().insert(name, value);
            }
            Call::new(inner, request.map(B::from)).await
        })
    }
}

impl<G: Signer, B> SignLayer<G, B> {
    async fn sign(&self, request: &Request<Bytes>) -> Result<Vec<SignatureHeader>, DeliveryError> {
        let delivery = request.extensions().get::<outbox_core::Delivery>();
        let Some(delivery) = delivery else {
            return Err(DeliveryError::rejected(
                "a request without its delivery can't be signed",
            ));
        };
        delivery.advance(Phase::Waiting);
        let id = delivery.event().id;
        let input = SigningInput::new(id, (self.now)(), request.body().clone());
        self.signer.sign(&input).await.map_err(|error| {
            let failed = match error.kind() {
                ErrorKind::Unavailable => DeliveryError::not_attempted("the signer can't answer"),
                _ => DeliveryError::transient("signing failed"),
            };
            failed.with_phase(Phase::Waiting).with_source(error)
        })
    }
}

fn checked(header: &SignatureHeader) -> Result<(HeaderName, HeaderValue), DeliveryError> {
    let name = HeaderName::from_bytes(header.name.as_bytes());
    let value = HeaderValue::from_str(&header.value);
    match (name, value) {
        (Ok(name), Ok(value)) => Ok((name, value)),
        _ => Err(
            DeliveryError::rejected("the signer gave a header that can't be sent")
                .with_phase(Phase::Waiting),
        ),
    }
}
