//! One destination for every event.

use std::sync::Arc;

use async_trait::async_trait;
use outbox_core::Error;

use super::{Destinations, Endpoint, Resolution};

/// Every event goes to one endpoint, whatever its own destination says. Cheap to clone.
///
/// ```
/// use outbox_http::{Endpoint, GitHub, StaticDestination, Webhooks};
///
/// let endpoint = Endpoint::new("https://ci.example/hooks")?
///     .signer(GitHub::new("correct horse battery staple")?);
/// let webhooks = Webhooks::builder().destinations(StaticDestination::new(endpoint)).build()?;
/// # let _ = webhooks;
/// # Ok::<(), outbox_http::outbox_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StaticDestination(Arc<Endpoint>);

impl StaticDestination {
    /// Everything goes there.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self(Arc::new(endpoint))
    }
}

#[async_trait]
impl Destinations for StaticDestination {
    async fn resolve(&self, _: &str) -> Result<Resolution, Error> {
        Ok(Resolution::Endpoint(self.0.clone()))
    }
}
