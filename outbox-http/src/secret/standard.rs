//! A Standard Webhooks secret: `whsec_` and base64.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outbox_core::Error;
use zeroize::Zeroizing;

use super::{HmacKey, check_text, refused};

/// The key sizes that are taken, in bytes: the specification's 24 to 64, and up to the 75 that Svix
/// hands out.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=75;

/// A symmetric Standard Webhooks secret: `whsec_` followed by the standard base64 of 24 to 75 bytes
/// (Standard Webhooks 1.0, "Signature scheme").
///
/// ```
/// use outbox_http::StandardSecret;
///
/// let secret = StandardSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// assert_eq!(format!("{secret:?}"), "StandardSecret([redacted])");
/// assert_eq!(
///     StandardSecret::new("v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap_err().to_string(),
///     "setting `secret` begins with `v1,`, which belongs to signatures; remove it"
/// );
/// # Ok::<(), outbox_core::Error>(())
/// ```
#[derive(Clone)]
pub struct StandardSecret(HmacKey);

impl StandardSecret {
    /// Parses `whsec_…`.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig), saying what is wrong: empty, white
    /// space, a `v1,` in front, another prefix or none, not base64, too few or too many bytes.
    /// The text never quotes the secret.
    pub fn new(text: &str) -> Result<Self, Error> {
        Self::from_bytes(&decode(text, "whsec_")?)
    }

    /// The secret with these key bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): fewer than 24 bytes or more than 75.
    pub fn from_bytes(key: &[u8]) -> Result<Self, Error> {
        if !KEY_BYTES.contains(&key.len()) {
            let (min, max) = KEY_BYTES.into_inner();
            let problem = format!("holds {} bytes; {min} to {max} are allowed", key.len());
            return Err(refused(problem));
        }
        Ok(Self(HmacKey::new(key)))
    }

    pub(crate) const fn key(&self) -> &HmacKey {
        &self.0
    }
}

/// The bytes behind `prefix`, in standard base64 with padding.
pub(crate) fn decode(text: &str, prefix: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    check_text(text)?;
    if text.starts_with("v1,") || text.starts_with("v1a,") {
        let version = text.split(',').next().unwrap_or_default();
        let problem = format!("begins with `{version},`, which belongs to signatures; remove it");
        return Err(refused(problem));
    }
    let Some(encoded) = text.strip_prefix(prefix) else {
        return Err(refused(wrong_prefix(text, prefix)));
    };
    if encoded.is_empty() {
        return Err(refused(format!("has nothing after `{prefix}`")));
    }
    match STANDARD.decode(encoded) {
        Ok(bytes) => Ok(Zeroizing::new(bytes)),
        // The decoder's own text quotes bytes of the secret.
        Err(_) if encoded.contains(['-', '_']) => Err(refused(format!(
            "is URL-safe base64 after `{prefix}`; standard base64 (+ and /) is needed"
        ))),
        Err(_) => Err(refused(format!(
            "isn't standard base64 with padding after `{prefix}`"
        ))),
    }
}

/// What the text is instead, where it says so.
fn wrong_prefix(text: &str, prefix: &str) -> String {
    let what = match text.split_once('_').map(|(kind, _)| kind) {
        Some("whsec") => "is a shared secret (`whsec_`)",
        Some("whsk") if cfg!(not(feature = "ed25519")) => {
            "is an Ed25519 key (`whsk_`), which needs the feature `ed25519`"
        }
        Some("whpk") if cfg!(not(feature = "ed25519")) => {
            "is an Ed25519 key (`whpk_`), which needs the feature `ed25519`"
        }
        Some("whsk") => "is an Ed25519 private key (`whsk_`)",
        Some("whpk") => "is an Ed25519 public key (`whpk_`)",
        _ => return format!("doesn't begin with `{prefix}`"),
    };
    format!("{what}; `{prefix}` is needed here")
}

impl FromStr for StandardSecret {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl fmt::Debug for StandardSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StandardSecret([redacted])")
    }
}
