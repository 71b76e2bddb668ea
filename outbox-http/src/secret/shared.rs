//! A secret whose text is the key, verbatim.

use std::fmt;
use std::str::FromStr;

use outbox_core::Error;

use super::{HmacKey, check_text, refused};

/// The shortest secret that [`SharedSecret::new`] takes, in bytes.
pub const MIN_SHARED_SECRET: usize = 16;

/// A secret whose UTF-8 bytes are the HMAC key, as `X-Signature`, GitHub, Stripe, Slack and Shopify
/// have it.
///
/// A Stripe secret begins with `whsec_` and is used with that prefix; the same-looking
/// [`StandardSecret`](crate::StandardSecret) is base64 after the prefix. The two are different
/// types because the keys differ.
///
/// ```
/// use outbox_http::SharedSecret;
///
/// let secret = SharedSecret::new("correct horse battery staple")?;
/// assert_eq!(format!("{secret:?}"), "SharedSecret([redacted])");
/// assert_eq!(
///     SharedSecret::new("swordfish").unwrap_err().to_string(),
///     "setting `secret` has 9 bytes; at least 16 are needed"
/// );
/// # Ok::<(), outbox_core::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedSecret(HmacKey);

impl SharedSecret {
    /// A secret of at least 16 bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): empty, white space around it, too
    /// short. The text never quotes the secret.
    pub fn new(text: &str) -> Result<Self, Error> {
        let secret = Self::existing(text)?;
        if text.len() < MIN_SHARED_SECRET {
            let problem = format!(
                "has {} bytes; at least {MIN_SHARED_SECRET} are needed",
                text.len()
            );
            return Err(refused(problem));
        }
        Ok(secret)
    }

    /// A secret that somebody else chose, of any length but zero.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): empty, or white space around it.
    pub fn existing(text: &str) -> Result<Self, Error> {
        check_text(text)?;
        Ok(Self(HmacKey::new(text.as_bytes())))
    }

    pub(crate) const fn key(&self) -> &HmacKey {
        &self.0
    }
}

impl FromStr for SharedSecret {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret([redacted])")
    }
}
