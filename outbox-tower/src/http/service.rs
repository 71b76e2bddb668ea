use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::response::Parts;
use ::http::{Request, Response};
use bytes::Bytes;
use outbox_core::{Delivery, DeliveryError, Receipt};
use tower::BoxError;
use tower_service::Service;

use super::{ResponseFuture, by_status, post};

pub(super) type ToRequest =
    Arc<dyn Fn(&Delivery) -> Result<Request<Bytes>, DeliveryError> + Send + Sync>;
pub(super) type FromHead = Arc<dyn Fn(&Parts) -> Result<Receipt, DeliveryError> + Send + Sync>;

/// A service of `http::Request<B>` as a service of [`Delivery`].
///
/// The [`Delivery`] is put into the request's extensions, so that this crate's layers work inside
/// too. The outcome is decided at the head of the answer, whose body is dropped.
///
/// ```
/// use outbox_core::{DeliveryError, Receipt};
/// use outbox_tower::http::{HttpService, by_status};
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # let client = tower::service_fn(|_: http::Request<Full<Bytes>>| async {
/// #     Ok::<_, std::convert::Infallible>(http::Response::new(Full::<Bytes>::default()))
/// # });
///
/// let service = HttpService::<_, Full<Bytes>>::new(client).answer(|head| {
///     match head.status.as_u16() {
///         404 => Err(DeliveryError::transient("not deployed yet")),
///         _ => by_status(head),
///     }
/// });
/// ```
pub struct HttpService<S, B = Bytes> {
    inner: S,
    request: ToRequest,
    answer: FromHead,
    body: PhantomData<fn() -> B>,
}

impl<S, B> HttpService<S, B> {
    /// Sends a [`post`] of each event and reads the answer [`by_status`].
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            request: Arc::new(post),
            answer: Arc::new(by_status),
            body: PhantomData,
        }
    }

    /// Makes requests otherwise.
    #[must_use]
    pub fn request<F>(mut self, request: F) -> Self
    where
        F: Fn(&Delivery) -> Result<Request<Bytes>, DeliveryError> + Send + Sync + 'static,
    {
        self.request = Arc::new(request);
        self
    }

    /// Reads answers otherwise.
    #[must_use]
    pub fn answer<F>(mut self, answer: F) -> Self
    where
        F: Fn(&Parts) -> Result<Receipt, DeliveryError> + Send + Sync + 'static,
    {
        self.answer = Arc::new(answer);
        self
    }
}

impl<S, B, RB> Service<Delivery> for HttpService<S, B>
where
    S: Service<Request<B>, Response = Response<RB>, Error: Into<BoxError>>,
    B: From<Bytes>,
{
    type Response = Receipt;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        match (self.request)(&delivery) {
            Ok(request) => {
                let mut request = request.map(B::from);
                request.extensions_mut().insert(delivery.clone());
                let call = self.inner.call(request);
                ResponseFuture::calling(call, delivery, Arc::clone(&self.answer))
            }
            Err(error) => ResponseFuture::refused(error),
        }
    }
}

impl<S: Clone, B> Clone for HttpService<S, B> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            request: Arc::clone(&self.request),
            answer: Arc::clone(&self.answer),
            body: PhantomData,
        }
    }
}

impl<S: fmt::Debug, B> fmt::Debug for HttpService<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
