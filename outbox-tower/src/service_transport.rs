//! A service as a transport.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};

use futures::lock::Mutex as AsyncMutex;
use outbox_core::{Delivery, DeliveryError, Phase, Receipt, Transport, async_trait};
use tower::BoxError;
use tower_service::Service;

use crate::call::{Call, NotReady};
use crate::classify::classify;

/// Any `Service<Delivery>` that answers with a [`Receipt`] as a [`Transport`].
///
/// Each delivery clones the service, readies **that clone** and calls it, so that deliveries don't
/// wait for each other and no clone is called unready. The attempt's phase stays
/// [`Waiting`](Phase::Waiting) until the call; from there it counts as sending until the service says
/// otherwise. Errors are read by [`classify`].
///
/// Layers whose limit is kept per clone, or that can't be cloned (tower's `RateLimit`, `Balance`),
/// go through [`serialized`](Self::serialized).
pub struct ServiceTransport<S> {
    service: Mutex<S>,
}

impl<S> ServiceTransport<S>
where
    S: Service<Delivery, Response = Receipt, Error: Into<BoxError>, Future: Send> + Clone + Send,
{
    /// A service whose clones share what has to be shared.
    pub const fn new(service: S) -> Self {
        Self {
            service: Mutex::new(service),
        }
    }
}

impl<S> ServiceTransport<S> {
    /// One service for all deliveries: they take turns at readying and calling it, and await their
    /// answers side by side.
    pub const fn serialized(service: S) -> SerializedTransport<S>
    where
        S: Service<Delivery, Response = Receipt, Error: Into<BoxError>, Future: Send> + Send,
    {
        SerializedTransport {
            service: AsyncMutex::new(service),
        }
    }
}

#[async_trait]
impl<S> Transport for ServiceTransport<S>
where
    S: Service<Delivery, Response = Receipt, Error: Into<BoxError>, Future: Send> + Clone + Send,
{
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let service = self
            .service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Call::new(service, delivery).await.map_err(classify)
    }
}

impl<S> fmt::Debug for ServiceTransport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceTransport").finish_non_exhaustive()
    }
}

/// A service that can't be cloned as a [`Transport`]; see [`ServiceTransport::serialized`].
///
/// While the service is not ready, all deliveries wait: set the relay's concurrency with that in
/// mind.
pub struct SerializedTransport<S> {
    service: AsyncMutex<S>,
}

#[async_trait]
impl<S> Transport for SerializedTransport<S>
where
    S: Service<Delivery, Response = Receipt, Error: Into<BoxError>, Future: Send> + Send,
{
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        delivery.advance(Phase::Waiting);
        let response = {
            let mut service = self.service.lock().await;
            poll_fn(|cx| service.poll_ready(cx))
                .await
                .map_err(|error| classify(NotReady::boxed(error)))?;
            delivery.hand_over();
            service.call(delivery)
        };
        response.await.map_err(|error| classify(error.into()))
    }
}

impl<S> fmt::Debug for SerializedTransport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerializedTransport")
            .finish_non_exhaustive()
    }
}
