use ::http::request::Parts;
use bytes::Bytes;
use outbox_core::async_trait;
use outbox_http::Verifier;

use super::{Refused, Verified, VerifyRequest};

/// A signature scheme of `outbox-http` as the verifier of a [`VerifyLayer`](super::VerifyLayer).
///
/// Where a scheme does not sign the message's id (GitHub, Shopify, `X-Signature`), whoever saw one
/// delivery can send it again under another id: let such receivers bear repeats.
///
/// ```
/// use outbox_http::StandardWebhooks;
/// use outbox_tower::receive::{VerifyLayer, WebhookVerifier};
///
/// let scheme = StandardWebhooks::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let layer = VerifyLayer::new(WebhookVerifier::new("forge", scheme));
/// # let _ = layer;
/// # Ok::<(), outbox_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct WebhookVerifier<V> {
    source: String,
    scheme: V,
}

impl<V: Verifier> WebhookVerifier<V> {
    /// Verifies what `source` sends.
    pub fn new(source: impl Into<String>, scheme: V) -> Self {
        Self {
            source: source.into(),
            scheme,
        }
    }
}

#[async_trait]
impl<V: Verifier> VerifyRequest for WebhookVerifier<V> {
    async fn verify(&self, head: &Parts, body: &Bytes) -> Result<Verified, Refused> {
        match self.scheme.verify(&head.headers, body) {
            Ok(delivery) => {
                let mut verified = Verified::new(self.source.clone());
                verified.id = delivery.id;
                Ok(verified)
            }
            Err(error) => Err(Refused::new(error.to_string())),
        }
    }
}
