//! What the schemes that sign the body alone have in common.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use outbox_core::{Error, SignatureHeader, SigningInput};

use super::matching::find_by_code;
use super::{Settings, no_active_key};
use crate::hex;
use crate::secret::SharedSecret;
use crate::verify::{MAX_ID, Verified, VerifyError, one, optional};

/// How one of these schemes writes its headers.
pub(super) struct BodyMac {
    pub(super) scheme: &'static str,
    pub(super) signature: &'static str,
    pub(super) id: &'static str,
    /// What stands before the code.
    pub(super) prefix: &'static str,
    pub(super) encoding: Encoding,
}

pub(super) enum Encoding {
    Hex,
    Base64,
}

impl BodyMac {
    /// The headers, signed with the first key that counts: there is room for one signature.
    pub(super) fn sign(
        &self,
        settings: &Settings<SharedSecret>,
        input: &SigningInput,
    ) -> Result<Vec<SignatureHeader>, Error> {
        let ring = settings.keys.current();
        let mut active = ring.active(input.timestamp);
        let key = active.next().ok_or_else(|| no_active_key(self.scheme))?;
        key.count_use();
        let code = key.secret().key().mac(&[&input.body]);
        let mut signature = String::with_capacity(self.prefix.len() + 64);
        signature.push_str(self.prefix);
        match self.encoding {
            Encoding::Hex => hex::push(&code, &mut signature),
            Encoding::Base64 => STANDARD.encode_string(code, &mut signature),
        }
        Ok(vec![
            SignatureHeader::new(self.id, input.id.to_string()),
            SignatureHeader::new(self.signature, signature),
        ])
    }

    pub(super) fn verify(
        &self,
        settings: &Settings<SharedSecret>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Verified, VerifyError> {
        let id = optional(headers, self.id, MAX_ID)?;
        let signature = one(headers, self.signature, MAX_ID)?;
        let candidates: Vec<Vec<u8>> = self.decode(signature).into_iter().collect();
        let ring = settings.keys.current();
        let mac = |secret: &SharedSecret| secret.key().mac(&[body]);
        let key = find_by_code(&ring, settings.clock.now(), &candidates, mac)?;
        Ok(Verified {
            key,
            id: id.map(str::to_owned),
            id_is_signed: false,
            timestamp: None,
        })
    }

    fn decode(&self, signature: &str) -> Option<Vec<u8>> {
        let code = signature.strip_prefix(self.prefix)?;
        match self.encoding {
            Encoding::Hex => hex::decode_code(code).map(|code| code.to_vec()),
            Encoding::Base64 => STANDARD.decode(code).ok(),
        }
    }
}

/// The [`Signer`](outbox_core::Signer) and [`Verifier`](crate::Verifier) of such a scheme.
macro_rules! body_mac_scheme {
    ($scheme:ident, $format:expr) => {
        super::scheme_settings!($scheme, crate::SharedSecret);

        impl $scheme {
            /// Signs and verifies with this secret.
            ///
            /// # Errors
            ///
            /// As [`SharedSecret::new`](crate::SharedSecret::new): it has at least 16 bytes.
            /// [`with_secret`](Self::with_secret) takes shorter ones that somebody else chose.
            pub fn new(secret: &str) -> Result<Self, outbox_core::Error> {
                crate::SharedSecret::new(secret).map(Self::with_secret)
            }
        }

        #[async_trait::async_trait]
        impl outbox_core::Signer for $scheme {
            async fn sign(
                &self,
                input: &outbox_core::SigningInput,
            ) -> Result<Vec<outbox_core::SignatureHeader>, outbox_core::Error> {
                $format.sign(&self.0, input)
            }
        }

        impl crate::Verifier for $scheme {
            fn verify(
                &self,
                headers: &http::HeaderMap,
                body: &[u8],
            ) -> Result<crate::Verified, crate::VerifyError> {
                $format.verify(&self.0, headers, body)
            }
        }
    };
}
pub(super) use body_mac_scheme;
