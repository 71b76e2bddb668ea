//! Random parts of durations, so that relays which failed together do not come back together.

use std::time::Duration;

use crate::LeaseToken;

/// Between zero and `range`.
pub(super) fn spread(range: Duration) -> Duration {
    // A random UUID's last four bytes are all random (RFC 9562, section 5.4).
    let bytes = LeaseToken::new().as_bytes().last_chunk::<4>().copied();
    let fraction = u32::from_be_bytes(bytes.unwrap_or_default());
    range.mul_f64(f64::from(fraction) / f64::from(u32::MAX))
}
