//! `X-Signature` with `X-Webhook-Id`: the HMAC of the payload alone.

use async_trait::async_trait;
use http::HeaderMap;
use outbox_core::{Error, SignatureHeader, Signer, SigningInput};

use super::matching::find_key;
use super::{Settings, no_active_key, scheme_settings};
use crate::hex;
use crate::secret::{SharedSecret, same_code};
use crate::verify::{MAX_ID, Verified, Verifier, VerifyError, one, optional};

const SIGNATURE: &str = "x-signature";
const ID: &str = "x-webhook-id";

/// `X-Signature`: the lower-case hex HMAC-SHA256 of the payload; `X-Webhook-Id`: the event's id.
///
/// It signs neither the id nor a time, so a delivery that somebody overheard can be sent again.
/// Prefer [`StandardWebhooks`](super::StandardWebhooks) where the receiver can do it.
/// With several keys the first that counts signs.
#[derive(Debug, Clone)]
pub struct XSignature(Settings<SharedSecret>);

scheme_settings!(XSignature, SharedSecret);

impl XSignature {
    /// Signs and verifies with this secret.
    ///
    /// # Errors
    ///
    /// As [`SharedSecret::new`].
    pub fn new(secret: &str) -> Result<Self, Error> {
        SharedSecret::new(secret).map(Self::with_secret)
    }
}

#[async_trait]
impl Signer for XSignature {
    async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        let ring = self.0.keys.current();
        let mut active = ring.active(input.timestamp);
        let key = active.next().ok_or_else(|| no_active_key("X-Signature"))?;
        key.count_use();
        let code = key.secret().key().mac(&[&input.body]);
        Ok(vec![
            SignatureHeader::new(ID, input.id.to_string()),
            SignatureHeader::new(SIGNATURE, hex::encode(&code)),
        ])
    }
}

impl Verifier for XSignature {
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, VerifyError> {
        let id = optional(headers, ID, MAX_ID)?;
        let candidate = hex::decode_code(one(headers, SIGNATURE, MAX_ID)?);
        let candidates: Vec<_> = candidate.into_iter().collect();
        let ring = self.0.keys.current();
        let mac = |secret: &SharedSecret| secret.key().mac(&[body]);
        let key = find_key(
            &ring,
            self.0.clock.now(),
            &candidates,
            mac,
            |code, candidate| same_code(code, candidate),
        )?;
        Ok(Verified {
            key,
            id: id.map(str::to_owned),
            id_is_signed: false,
            timestamp: None,
        })
    }
}
