//! The seam to whatever holds the key: signing what goes out.

use std::fmt;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;

use crate::text::Bytes as Length;
use crate::{Error, EventId};

/// What is signed.
#[derive(Clone)]
#[non_exhaustive]
pub struct SigningInput {
    /// The event's id: the same for every attempt.
    pub id: EventId,
    /// The time of this attempt.
    pub timestamp: SystemTime,
    /// The bytes that are sent as the body, exactly.
    pub body: Bytes,
}

impl SigningInput {
    /// The body of one attempt.
    #[must_use]
    pub const fn new(id: EventId, timestamp: SystemTime, body: Bytes) -> Self {
        Self {
            id,
            timestamp,
            body,
        }
    }
}

/// Without the body.
impl fmt::Debug for SigningInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningInput")
            .field("id", &self.id)
            .field("timestamp", &self.timestamp)
            .field("body", &Length(self.body.len()))
            .finish()
    }
}

/// A header that carries a signature or what a verifier needs beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureHeader {
    /// The name, in lower case.
    pub name: String,
    /// The value: visible ASCII.
    pub value: String,
}

impl SignatureHeader {
    /// A header.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// Signs deliveries. Asynchronous, so that a key service can do it.
///
/// # Contract
///
/// The same input gives headers that the same verifier accepts. Neither the key nor the body
/// appears in errors or `Debug`.
///
/// # Errors
///
/// [`Unavailable`](crate::ErrorKind::Unavailable) where the key service can't answer: nothing was
/// sent and the attempt is tried again. Any other kind fails the attempt.
///
/// # Cancel safety
///
/// Dropping the future signs nothing.
///
/// # Example
///
/// ```
/// use outbox_core::{async_trait, Error, SignatureHeader, Signer, SigningInput};
///
/// /// For receivers that trust the network.
/// #[derive(Debug)]
/// struct IdOnly;
///
/// #[async_trait]
/// impl Signer for IdOnly {
///     async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
///         Ok(vec![SignatureHeader::new("x-webhook-id", input.id.to_string())])
///     }
/// }
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Signer: Send + Sync {
    /// The headers to send with the body.
    async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_body() {
        let input = SigningInput::new(EventId::new(), SystemTime::UNIX_EPOCH, "hunter2".into());
        let shown = format!("{input:?}");
        assert!(shown.contains("7 bytes"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
