//! Random parts of durations, so that relays which failed together do not come back together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::LeaseToken;

/// A stream of random numbers: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
/// Number Generators", 2014). Clones draw from the same stream.
#[derive(Debug, Clone)]
pub(crate) struct Spread(Arc<AtomicU64>);

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Spread {
    /// A stream that differs from relay to relay.
    pub(crate) fn random() -> Self {
        // A random UUID's last four bytes are all random (RFC 9562, section 5.4).
        let bytes = LeaseToken::new().as_bytes().last_chunk::<4>().copied();
        Self::seeded(u32::from_be_bytes(bytes.unwrap_or_default()).into())
    }

    /// The stream of this seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// Between zero and `range`.
    pub(crate) fn draw(&self, range: Duration) -> Duration {
        let z = self
            .0
            .fetch_add(GAMMA, Ordering::Relaxed)
            .wrapping_add(GAMMA);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [a, b, c, d, ..] = (z ^ (z >> 31)).to_be_bytes();
        let fraction = u32::from_be_bytes([a, b, c, d]);
        range.mul_f64(f64::from(fraction) / f64::from(u32::MAX))
    }
}
