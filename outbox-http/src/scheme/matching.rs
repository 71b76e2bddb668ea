//! Every key against every candidate, in constant time for each pair.

use std::sync::Arc;
use std::time::SystemTime;

use crate::key_ring::KeyRing;
use crate::secret::same_code;
use crate::verify::{VerifyError, VerifyErrorKind};

/// The name of the first active key that made one of the candidates. `prepare` turns a key into
/// what candidates are compared with, once per key. No pair is left out once one fits, so the time
/// taken tells nothing about which.
pub(super) fn find_key<K, P, C>(
    ring: &KeyRing<K>,
    now: SystemTime,
    candidates: &[C],
    prepare: impl Fn(&K) -> P,
    matches: impl Fn(&P, &C) -> bool,
) -> Result<Arc<str>, VerifyError> {
    let mut any_active = false;
    let mut found = None;
    for key in ring.active(now) {
        any_active = true;
        let prepared = prepare(key.secret());
        for candidate in candidates {
            if matches(&prepared, candidate) && found.is_none() {
                found = Some(key);
            }
        }
    }
    match found {
        Some(key) => {
            key.count_use();
            Ok(key.name().clone())
        }
        None if any_active => Err(VerifyError::new(VerifyErrorKind::NoMatch)),
        None => Err(VerifyError::new(VerifyErrorKind::NoActiveKey)),
    }
}

/// [`find_key`] for codes: `mac` makes the right one, candidates are compared in constant time.
pub(super) fn find_by_code<K, C: AsRef<[u8]>>(
    ring: &KeyRing<K>,
    now: SystemTime,
    candidates: &[C],
    mac: impl Fn(&K) -> [u8; 32],
) -> Result<Arc<str>, VerifyError> {
    find_key(ring, now, candidates, mac, |code, candidate| {
        same_code(code, candidate.as_ref())
    })
}
