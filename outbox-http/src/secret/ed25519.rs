//! Ed25519 keys of Standard Webhooks `v1a`.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer, VerifyingKey};
use outbox_core::Error;
use zeroize::Zeroizing;

use super::refused;
use super::standard::decode;

/// A private key: `whsk_` and the standard base64 of the 32-byte seed followed by the 32-byte public
/// key. Wiped when dropped, redacted in `Debug`.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Parses `whsk_…`.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig), saying what is wrong: as
    /// [`StandardSecret::new`](super::StandardSecret::new), or a public half that doesn't belong to
    /// the seed. The text never quotes the key.
    pub fn new(text: &str) -> Result<Self, Error> {
        let bytes = decode(text, "whsk_")?;
        let pair: Zeroizing<[u8; 64]> = match bytes.as_slice().try_into() {
            Ok(pair) => Zeroizing::new(pair),
            Err(_) => {
                let problem = format!("holds {} bytes; 64 are needed", bytes.len());
                return Err(refused(problem));
            }
        };
        ed25519_dalek::SigningKey::from_keypair_bytes(&pair)
            .map(Self)
            .map_err(|_| refused("has a public half that doesn't belong to its seed"))
    }

    /// The public key to hand to receivers.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(crate) fn sign(&self, content: &[u8]) -> [u8; 64] {
        self.0.sign(content).to_bytes()
    }
}

/// A public key: `whpk_` and the standard base64 of 32 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Parses `whpk_…`.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig), saying what is wrong; weak keys,
    /// under which signatures prove nothing, are refused.
    pub fn new(text: &str) -> Result<Self, Error> {
        let bytes = decode(text, "whpk_")?;
        let Ok(bytes) = <&[u8; 32]>::try_from(bytes.as_slice()) else {
            let problem = format!("holds {} bytes; 32 are needed", bytes.len());
            return Err(refused(problem));
        };
        match VerifyingKey::from_bytes(bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(key)),
            _ => Err(refused("is no usable Ed25519 public key")),
        }
    }

    pub(crate) fn verifies(&self, content: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(content, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode(self.0.as_bytes());
        write!(f, "whpk_{encoded}")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey([redacted])")
    }
}

impl FromStr for SigningKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}
