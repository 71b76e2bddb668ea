//! Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp`, `webhook-signature`.

mod key;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use outbox_core::{Error, SignatureHeader, Signer, SigningInput};

use super::matching::find_key;
use super::{Settings, no_active_key, scheme_settings};
use crate::clock::unix_seconds;
use crate::verify::{
    MAX_ID, MAX_SIGNATURE_HEADER, MAX_SIGNATURES, Verified, Verifier, VerifyError, VerifyErrorKind,
    fresh, one,
};

pub use key::StandardKey;

use key::Check;

const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";
const SIGNATURE: &str = "webhook-signature";

/// [Standard Webhooks](https://www.standardwebhooks.com) 1.0, the scheme to prefer: it signs id, time
/// and body, and carries a signature for each key that counts, so that secrets rotate without a gap.
///
/// The signed content is `id.timestamp.body`; the timestamp is the attempt's, the id the same over
/// all attempts.
///
/// ```
/// use http::HeaderMap;
/// use outbox_core::{Bytes, EventId, Signer, SigningInput};
/// use outbox_http::{StandardWebhooks, Verifier};
/// use std::time::SystemTime;
///
/// let scheme = StandardWebhooks::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let body = Bytes::from_static(b"{}");
/// let input = SigningInput::new(EventId::new(), SystemTime::now(), body.clone());
/// let mut headers = HeaderMap::new();
/// for header in futures::executor::block_on(scheme.sign(&input))? {
///     headers.insert(http::HeaderName::try_from(header.name)?, header.value.parse()?);
/// }
/// let verified = scheme.verify(&headers, &body)?;
/// assert_eq!(verified.id, Some(input.id.to_string()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StandardWebhooks(Settings<StandardKey>);

scheme_settings!(StandardWebhooks, StandardKey, tolerance);

impl StandardWebhooks {
    /// Signs and verifies with this key.
    ///
    /// # Errors
    ///
    /// As [`StandardKey::new`].
    pub fn new(key: &str) -> Result<Self, Error> {
        StandardKey::new(key).map(Self::with_secret)
    }
}

#[async_trait]
impl Signer for StandardWebhooks {
    async fn sign(&self, input: &SigningInput) -> Result<Vec<SignatureHeader>, Error> {
        let id = input.id.to_string();
        let timestamp = unix_seconds(input.timestamp).to_string();
        let parts = signed_content(&id, &timestamp, &input.body);
        let ring = self.0.keys.current();
        let mut signatures = String::new();
        for key in ring.active(input.timestamp) {
            if key.secret().sign(&parts, &mut signatures) {
                key.count_use();
            }
        }
        if signatures.is_empty() {
            return Err(no_active_key("Standard Webhooks"));
        }
        Ok(vec![
            SignatureHeader::new(ID, id),
            SignatureHeader::new(TIMESTAMP, timestamp),
            SignatureHeader::new(SIGNATURE, signatures),
        ])
    }
}

impl Verifier for StandardWebhooks {
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, VerifyError> {
        let id = one(headers, ID, MAX_ID)?;
        // With a dot in the id, what was signed could be read in two ways.
        if id.contains('.') {
            return Err(VerifyError::header(VerifyErrorKind::MalformedHeader, ID));
        }
        let timestamp = one(headers, TIMESTAMP, MAX_ID)?;
        let signatures = one(headers, SIGNATURE, MAX_SIGNATURE_HEADER)?;
        let now = self.0.clock.now();
        let signed_at = fresh(timestamp, TIMESTAMP, &self.0.clock, self.0.tolerance)?;
        let candidates = candidates(signatures)?;
        let parts = signed_content(id, timestamp, body);
        let ring = self.0.keys.current();
        let check = |key: &StandardKey| key.check(&parts);
        let key = find_key(&ring, now, &candidates, check, Check::fits)?;
        Ok(Verified {
            key,
            id: Some(id.to_owned()),
            id_is_signed: true,
            timestamp: Some(signed_at),
        })
    }
}

fn signed_content<'a>(id: &'a str, timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 5] {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
}

struct Candidate<'a> {
    version: &'a str,
    bytes: Vec<u8>,
}

/// The members of the header that can be read; malformed members are skipped.
fn candidates(header: &str) -> Result<Vec<Candidate<'_>>, VerifyError> {
    let mut candidates = Vec::new();
    for (n, member) in header.split(' ').enumerate() {
        if n == MAX_SIGNATURES {
            return Err(VerifyError::new(VerifyErrorKind::TooManySignatures));
        }
        let Some((version, encoded)) = member.split_once(',') else {
            continue;
        };
        if let Ok(bytes) = STANDARD.decode(encoded) {
            candidates.push(Candidate { version, bytes });
        }
    }
    Ok(candidates)
}
