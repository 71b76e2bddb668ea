//! HMAC-SHA256 (RFC 2104, FIPS 198-1) with the key's schedule computed once.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// A keyed HMAC-SHA256. The state is wiped when it is dropped; the key itself isn't kept.
#[derive(Clone)]
pub(crate) struct HmacKey(Hmac<Sha256>);

impl HmacKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        match Hmac::new_from_slice(key) {
            Ok(state) => Self(state),
            Err(_) => unreachable!("HMAC takes keys of any length"),
        }
    }

    /// The code of `parts` read as one message.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut state = self.0.clone();
        for part in parts {
            state.update(part);
        }
        state.finalize().into_bytes().into()
    }
}

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Compares a candidate with the right code in constant time; another length is no match.
pub(crate) fn same_code(code: &[u8; 32], candidate: impl AsRef<[u8]>) -> bool {
    code.ct_eq(candidate.as_ref()).into()
}
