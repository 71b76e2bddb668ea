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
pub(crate) fn same_code(code: &[u8; 32], candidate: &[u8]) -> bool {
    code.ct_eq(candidate).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    /// Keys shorter and longer than a block, and a truncated code.
    #[test]
    fn gives_the_codes_of_rfc_4231() {
        let vectors = include_str!("../../tests/data/signature-vectors.json");
        let vectors: Vec<serde_json::Value> = serde_json::from_str(vectors).unwrap();
        let mut cases = 0;
        for vector in vectors
            .iter()
            .filter(|v| v["scheme"] == "rfc4231-hmac-sha256")
        {
            let text = |field: &str| bytes(vector[field].as_str().unwrap());
            let expected = text("expected");
            let body = text("body_hex");
            let (front, back) = body.split_at(body.len() / 2);
            let code = HmacKey::new(&text("secret_hex")).mac(&[front, back]);
            assert_eq!(code[..expected.len()], expected);
            cases += 1;
        }
        assert_eq!(cases, 7);
    }
}
