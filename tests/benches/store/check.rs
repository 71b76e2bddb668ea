//! What a drain must have done.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// One claimed event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) seq: i64,
    /// The key, which is a number; zero where there is none.
    pub(crate) key: u32,
    /// When its claim had returned.
    pub(crate) claimed: u64,
    /// When its settle was about to begin.
    pub(crate) settled: u64,
}

/// Moments that all workers put in one order.
#[derive(Debug, Default)]
pub(crate) struct Ticks(AtomicU64);

impl Ticks {
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// So many events came, none of them twice.
pub(crate) fn once(log: &[Entry], events: u32) {
    let mut seqs: Vec<i64> = log.iter().map(|entry| entry.seq).collect();
    seqs.sort_unstable();
    let all = seqs.len();
    seqs.dedup();
    assert_eq!(all, seqs.len(), "events came twice");
    assert_eq!(u32::try_from(all), Ok(events), "events are missing");
}

/// Of each key, each event came after the settle of the one before it had begun, or in one claim with
/// it.
pub(crate) fn ordered(log: &[Entry]) {
    let mut keys: HashMap<u32, Vec<Entry>> = HashMap::new();
    for entry in log {
        keys.entry(entry.key).or_default().push(*entry);
    }
    for (key, mut events) in keys {
        events.sort_unstable_by_key(|entry| entry.seq);
        for pair in events.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            assert!(
                first.claimed == second.claimed || first.settled < second.claimed,
                "key {key}: {second:?} overtook {first:?}"
            );
        }
    }
}
