//! The transport: one signed POST for each attempt.

mod attempt;
mod builder;
mod head;
mod redact;
mod report;
mod request;
mod response;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use http::HeaderValue;
use outbox_core::{Delivery, DeliveryError, Receipt, Signer, Transport};
use tower_service::Service;

use crate::client::{Clients, Timeouts};
use crate::clock::WallClock;
use crate::destination::Destinations;
use crate::encoding::Encoding;
use crate::outcome::Classifier;

pub use builder::WebhooksBuilder;
pub use report::{AttemptObserver, AttemptReport};

/// Delivers events as signed HTTP POST requests: a [`Transport`] and a `tower` service.
///
/// Cheap to clone; the clones share the connection pool. It needs a tokio runtime.
///
/// Deadlines are on, redirects are never followed, the [address guard](crate::AddressGuard) is on.
///
/// ```
/// use outbox_http::{StandardWebhooks, Webhooks};
///
/// let webhooks = Webhooks::builder()
///     .signer(StandardWebhooks::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?)
///     .build()?;
/// # let _: &dyn outbox_core::Transport = &webhooks;
/// # Ok::<(), outbox_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Webhooks(Arc<Inner>);

struct Inner {
    clients: Clients,
    destinations: Arc<dyn Destinations>,
    signers: Vec<Arc<dyn Signer>>,
    classifier: Arc<dyn Classifier>,
    observer: Option<Arc<dyn AttemptObserver>>,
    unsigned: bool,
    encoding: Encoding,
    heed_header: bool,
    timeouts: Timeouts,
    user_agent: HeaderValue,
    max_request: usize,
    capture: usize,
    recheck: Duration,
    clock: WallClock,
}

impl Webhooks {
    /// A transport to be configured.
    pub fn builder() -> WebhooksBuilder {
        WebhooksBuilder::new()
    }
}

#[async_trait]
impl Transport for Webhooks {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        self.0.attempt(delivery).await
    }
}

/// Always ready; limits belong into layers around it.
impl Service<Delivery> for Webhooks {
    type Response = Receipt;
    type Error = DeliveryError;
    type Future = BoxFuture<'static, Result<Receipt, DeliveryError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DeliveryError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let inner = self.0.clone();
        Box::pin(async move { inner.attempt(delivery).await })
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("guard", self.0.clients.guard())
            .field("timeouts", &self.0.timeouts)
            .finish_non_exhaustive()
    }
}
