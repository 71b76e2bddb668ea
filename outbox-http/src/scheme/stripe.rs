//! Stripe's `Stripe-Signature`.

use async_trait::async_trait;
use http::HeaderMap;
use outbox_core::{Error, SignatureHeader, Signer, SigningInput};

use super::matching::find_by_code;
use super::{Settings, no_active_key, scheme_settings};
use crate::clock::unix_seconds;
use crate::hex;
use crate::secret::SharedSecret;
use crate::verify::{
    MAX_SIGNATURE_HEADER, MAX_SIGNATURES, Verified, Verifier, VerifyError, VerifyErrorKind, fresh,
    one,
};

const SIGNATURE: &str = "stripe-signature";

/// `Stripe-Signature: t=<unix>,v1=<hex>[,v1=…]`, the HMAC-SHA256 of `t.body` (Stripe documentation,
/// "Verify webhook signatures manually").
///
/// The key is the secret's text as it stands, a `whsec_` in front included. Every key that counts
/// signs. The scheme has no header for an id; receivers find it in the body.
#[derive(Debug, Clone)]
pub struct Stripe(Settings<SharedSecret>);

scheme_settings!(Stripe, SharedSecret, tolerance);

impl Stripe {
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
impl Signer for Stripe {
    async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        let timestamp = unix_seconds(input.timestamp).to_string();
        let mut header = format!("t={timestamp}");
        let unsigned = header.len();
        let ring = self.0.keys.current();
        for key in ring.active(input.timestamp) {
            key.count_use();
            let code = key
                .secret()
                .key()
                .mac(&signed_content(&timestamp, &input.body));
            header.push_str(",v1=");
            hex::push(&code, &mut header);
        }
        if header.len() == unsigned {
            return Err(no_active_key("Stripe"));
        }
        Ok(vec![SignatureHeader::new(SIGNATURE, header)])
    }
}

impl Verifier for Stripe {
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, VerifyError> {
        let (timestamp, candidates) = parse(one(headers, SIGNATURE, MAX_SIGNATURE_HEADER)?)?;
        let signed_at = fresh(timestamp, SIGNATURE, &self.0.clock, self.0.tolerance)?;
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

fn signed_content<'a>(timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 3] {
    [timestamp.as_bytes(), b".", body]
}

/// The one timestamp and the `v1` members that can be read, in any order. Members of other versions
/// are skipped, a member without `=` is an error.
fn parse(header: &str) -> Result<(&str, Vec<[u8; 32]>), VerifyError> {
    let malformed = VerifyError::header(VerifyErrorKind::MalformedHeader, SIGNATURE);
    let mut timestamp = None;
    let mut candidates = Vec::new();
    for (n, member) in header.split(',').enumerate() {
        if n > MAX_SIGNATURES {
            return Err(VerifyError::new(VerifyErrorKind::TooManySignatures));
        }
        match member.trim().split_once('=') {
            Some(("t", _)) if timestamp.is_some() => return Err(malformed),
            Some(("t", value)) => timestamp = Some(value),
            Some(("v1", code)) => candidates.extend(hex::decode_code(code)),
            Some(_) => {}
            None => return Err(malformed),
        }
    }
    Ok((timestamp.ok_or(malformed)?, candidates))
}
