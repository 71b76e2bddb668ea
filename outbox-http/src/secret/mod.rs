//! Secrets: typed, parsed strictly, never printed, wiped from memory when dropped.

#[cfg(feature = "ed25519")]
mod ed25519;
mod hmac_key;
mod provider;
mod reload;
mod shared;
mod standard;

#[cfg(feature = "ed25519")]
pub use ed25519::{PublicKey, SigningKey};
pub(crate) use hmac_key::{HmacKey, same_code};
pub use provider::{EnvSecrets, FileSecrets, SecretProvider, SecretText};
pub use reload::Reload;
pub use shared::{MIN_SHARED_SECRET, SharedSecret};
pub use standard::StandardSecret;

use outbox_core::Error;

/// What every secret refuses, whatever its scheme: nothing, and white space around it (the usual
/// trace of a paste or of a file's last line).
pub(crate) fn check_text(text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(refused("is empty"));
    }
    if text.trim() != text {
        return Err(refused("has white space around it; remove it"));
    }
    Ok(())
}

/// A secret that is refused. The text never quotes the secret.
pub(crate) fn refused(problem: impl std::fmt::Display) -> Error {
    Error::invalid_config("secret", problem)
}
