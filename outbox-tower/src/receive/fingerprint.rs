//! What tells two requests apart.

use outbox_core::Fingerprint;
use sha2::{Digest, Sha256};

/// SHA-256 over the parts, each with its length before it, so that no two lists of parts look alike.
pub(crate) fn fingerprint(parts: &[&[u8]]) -> Fingerprint {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    Fingerprint::from_bytes(hash.finalize().into())
}
