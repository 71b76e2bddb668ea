//! The two kinds of key that Standard Webhooks has.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outbox_core::Error;

use super::Candidate;
#[cfg(feature = "ed25519")]
use crate::secret::{PublicKey, SigningKey};
use crate::secret::{StandardSecret, same_code};

/// A key of any kind that Standard Webhooks has. A ring can hold all kinds at once: every key that
/// can sign adds its signature.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StandardKey {
    /// `whsec_…`: version `v1`, HMAC-SHA256. Signs and verifies.
    Hmac(StandardSecret),
    /// `whsk_…`: version `v1a`, Ed25519. Signs and verifies.
    #[cfg(feature = "ed25519")]
    Signing(SigningKey),
    /// `whpk_…`: version `v1a`, Ed25519. Verifies only.
    #[cfg(feature = "ed25519")]
    Public(PublicKey),
}

impl StandardKey {
    /// Parses a key; the prefix says which kind.
    ///
    /// # Errors
    ///
    /// As the key types: [`StandardSecret::new`], and for `whsk_` and `whpk_` those of the feature
    /// `ed25519`.
    pub fn new(text: &str) -> Result<Self, Error> {
        #[cfg(feature = "ed25519")]
        if text.starts_with("whsk_") {
            return SigningKey::new(text).map(Self::Signing);
        } else if text.starts_with("whpk_") {
            return PublicKey::new(text).map(Self::Public);
        }
        StandardSecret::new(text).map(Self::Hmac)
    }

    /// Appends this key's signature to the header; false where the key can't sign.
    pub(super) fn sign(&self, parts: &[&[u8]], header: &mut String) -> bool {
        let separator = if header.is_empty() { "" } else { " " };
        match self {
            Self::Hmac(secret) => {
                header.extend([separator, "v1,"]);
                STANDARD.encode_string(secret.key().mac(parts), header);
                true
            }
            #[cfg(feature = "ed25519")]
            Self::Signing(key) => {
                header.extend([separator, "v1a,"]);
                STANDARD.encode_string(key.sign(&parts.concat()), header);
                true
            }
            #[cfg(feature = "ed25519")]
            Self::Public(_) => false,
        }
    }

    /// What candidates are compared with.
    pub(super) fn check(&self, parts: &[&[u8]]) -> Check {
        match self {
            Self::Hmac(secret) => Check::Code(secret.key().mac(parts)),
            #[cfg(feature = "ed25519")]
            Self::Signing(key) => Check::Signed(key.public(), parts.concat()),
            #[cfg(feature = "ed25519")]
            Self::Public(key) => Check::Signed(key.clone(), parts.concat()),
        }
    }
}

/// A key, ready for candidates.
pub(super) enum Check {
    Code([u8; 32]),
    #[cfg(feature = "ed25519")]
    Signed(PublicKey, Vec<u8>),
}

impl Check {
    pub(super) fn fits(&self, candidate: &Candidate<'_>) -> bool {
        match (self, candidate.version) {
            (Self::Code(code), "v1") => same_code(code, &candidate.bytes),
            #[cfg(feature = "ed25519")]
            (Self::Signed(key, content), "v1a") => key.verifies(content, &candidate.bytes),
            _ => false,
        }
    }
}

impl From<StandardSecret> for StandardKey {
    fn from(secret: StandardSecret) -> Self {
        Self::Hmac(secret)
    }
}

#[cfg(feature = "ed25519")]
impl From<SigningKey> for StandardKey {
    fn from(key: SigningKey) -> Self {
        Self::Signing(key)
    }
}

#[cfg(feature = "ed25519")]
impl From<PublicKey> for StandardKey {
    fn from(key: PublicKey) -> Self {
        Self::Public(key)
    }
}

impl FromStr for StandardKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}
