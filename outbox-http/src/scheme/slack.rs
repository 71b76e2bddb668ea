//! Slack's `X-Slack-Signature`.

use async_trait::async_trait;
use http::HeaderMap;
use outbox_core::{Error, SignatureHeader, Signer, SigningInput};

use super::matching::find_by_code;
use super::{Settings, no_active_key, scheme_settings};
use crate::clock::unix_seconds;
use crate::hex;
use crate::secret::SharedSecret;
use crate::verify::{MAX_ID, Verified, Verifier, VerifyError, fresh, one};

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";

/// `X-Slack-Signature: v0=<hex>` with `X-Slack-Request-Timestamp`, the HMAC-SHA256 of
/// `v0:timestamp:body` (Slack documentation, "Verifying requests from Slack").
///
/// With several keys the first that counts signs. The scheme has no header for an id.
#[derive(Debug, Clone)]
pub struct Slack(Settings<SharedSecret>);

scheme_settings!(Slack, SharedSecret, tolerance);

impl Slack {
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
impl Signer for Slack {
    async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        let timestamp = unix_seconds(input.timestamp).to_string();
        let ring = self.0.keys.current();
        let mut active = ring.active(input.timestamp);
        let key = active.next().ok_or_else(|| no_active_key("Slack"))?;
        key.count_use();
        let code = key
            .secret()
            .key()
            .mac(&signed_content(&timestamp, &input.body));
        let mut signature = "v0=".to_owned();
        hex::push(&code, &mut signature);
        Ok(vec![
            SignatureHeader::new(TIMESTAMP, timestamp),
            SignatureHeader::new(SIGNATURE, signature),
        ])
    }
}

impl Verifier for Slack {
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, VerifyError> {
        let timestamp = one(headers, TIMESTAMP, MAX_ID)?;
        let signature = one(headers, SIGNATURE, MAX_ID)?;
        let signed_at = fresh(timestamp, TIMESTAMP, &self.0.clock, self.0.tolerance)?;
        let code = signature.strip_prefix("v0=").and_then(hex::decode_code);
        let candidates: Vec<_> = code.into_iter().collect();
        let ring = self.0.keys.current();
        let mac = |secret: &SharedSecret| secret.key().mac(&signed_content(timestamp, body));
        let key = find_by_code(&ring, self.0.clock.now(), &candidates, mac)?;
        Ok(Verified {
            key,
            id: None,
            id_is_signed: false,
            timestamp: Some(signed_at),
        })
    }
}

fn signed_content<'a>(timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 4] {
    [b"v0:", timestamp.as_bytes(), b":", body]
}
