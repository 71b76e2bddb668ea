use ::http::request::Parts;
use bytes::Bytes;
use outbox_core::{Error, Fingerprint, InboxMessage, async_trait};

use super::Refused;

/// Who sent a request, and which message it is. [`VerifyLayer`](super::VerifyLayer) puts it into the
/// request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The sender: the scope in which its message ids are unique.
    pub source: String,
    /// The message's id, where the scheme has one.
    pub id: Option<String>,
    /// SHA-256 of the body; set by the layer.
    pub fingerprint: Option<Fingerprint>,
}

impl Verified {
    /// A message from `source`, of a scheme that has no ids.
    #[must_use]
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            id: None,
            fingerprint: None,
        }
    }

    /// The same with its id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The message for an [inbox](outbox_core::Inbox); `None` where it has no id.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig) where the id or the source is longer
    /// than a key may be.
    pub fn message(&self) -> Result<Option<InboxMessage>, Error> {
        let Some(id) = &self.id else { return Ok(None) };
        let mut message = InboxMessage::from_source(&self.source, id)?;
        message.fingerprint = self.fingerprint;
        Ok(Some(message))
    }
}

/// Decides whether a request is what it claims to be.
///
/// # Contract
///
/// It looks at the bytes as they came, compares in constant time, and checks the age of the
/// signature where the scheme has a time. It is asynchronous so that it can look up the sender's
/// keys.
///
/// # Errors
///
/// A [`Refused`], whose reason is logged and never sent.
///
/// # Cancel safety
///
/// Dropping the future decides nothing.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::request::Parts;
/// use outbox_core::async_trait;
/// use outbox_tower::receive::{Refused, Verified, VerifyRequest};
///
/// /// For a receiver that only its own network reaches.
/// struct Anybody;
///
/// #[async_trait]
/// impl VerifyRequest for Anybody {
///     async fn verify(&self, head: &Parts, _: &Bytes) -> Result<Verified, Refused> {
///         let id = head.headers.get("webhook-id").and_then(|id| id.to_str().ok());
///         let id = id.ok_or_else(|| Refused::new("no webhook-id"))?;
///         Ok(Verified::new("network").with_id(id))
///     }
/// }
/// ```
#[async_trait]
pub trait VerifyRequest: Send + Sync {
    /// Who sent it.
    async fn verify(&self, head: &Parts, body: &Bytes) -> Result<Verified, Refused>;
}
