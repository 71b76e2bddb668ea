//! Random choices from a seed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::EventId;

/// SplitMix64 (Steele, Lea and Flood, 2014), shared by all parts of one world.
#[derive(Clone)]
pub(crate) struct Random(Arc<Mutex<u64>>);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn id(&self) -> EventId {
        let (high, low) = (u128::from(self.next()), u128::from(self.next()));
        EventId::from_bytes((high << 64 | low).to_be_bytes())
    }

    /// At least `low`, less than `high`.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.between(0, 1_000) < per_mille
    }

    /// Mostly short, at times up to `longest`.
    pub(crate) fn duration(&self, longest: Duration) -> Duration {
        let longest = u64::try_from(longest.as_micros()).unwrap();
        let bits = self.between(0, u64::from(longest.ilog2()) + 1);
        Duration::from_micros(self.between(0, longest.min(1 << bits) + 1))
    }
}
