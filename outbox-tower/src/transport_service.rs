//! A transport as a service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use outbox_core::{Delivery, DeliveryError, Receipt, Transport};
use tower_service::Service;

/// A [`Transport`] as `Service<Delivery>`: the innermost of a stack of layers.
///
/// Always ready. Clones share the transport.
///
/// ```
/// use outbox_core::{async_trait, Delivery, DeliveryError, Receipt, Transport};
/// use outbox_tower::{ServiceTransport, TransportService};
/// use tower::ServiceBuilder;
///
/// # struct Webhooks;
/// # #[async_trait]
/// # impl Transport for Webhooks {
/// #     async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> { Ok(Receipt::new()) }
/// # }
/// let stack = ServiceBuilder::new()
///     .concurrency_limit(64)
///     .service(TransportService::new(Webhooks));
/// let transport = ServiceTransport::new(stack); // for a relay
/// # let _: &dyn Transport = &transport;
/// ```
pub struct TransportService<T: ?Sized> {
    transport: Arc<T>,
}

impl<T> TransportService<T> {
    /// `transport` as a service.
    pub fn new(transport: T) -> Self {
        Self::from_arc(Arc::new(transport))
    }
}

impl<T: ?Sized> TransportService<T> {
    /// A shared transport (`Arc<dyn Transport>`, say) as a service.
    pub const fn from_arc(transport: Arc<T>) -> Self {
        Self { transport }
    }
}

impl<T: Transport + ?Sized + 'static> Service<Delivery> for TransportService<T> {
    type Response = Receipt;
    type Error = DeliveryError;
    type Future = BoxFuture<'static, Result<Receipt, DeliveryError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DeliveryError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let transport = Arc::clone(&self.transport);
        Box::pin(async move { transport.deliver(delivery).await })
    }
}

impl<T: ?Sized> Clone for TransportService<T> {
    fn clone(&self) -> Self {
        Self::from_arc(Arc::clone(&self.transport))
    }
}

impl<T: ?Sized> fmt::Debug for TransportService<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportService").finish_non_exhaustive()
    }
}
