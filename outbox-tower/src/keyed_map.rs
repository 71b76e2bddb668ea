//! State per key, forgotten when it says nothing any more.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const SHARDS: usize = 16;
const SWEEP_FROM: usize = 64;

/// The state of one key.
pub(crate) trait Entry {
    /// Whether forgetting it changes nothing.
    fn is_idle(&self, now: Instant) -> bool;
}

/// A map in shards. A shard that has doubled since its last sweep drops its idle entries, so that
/// memory follows the keys in use and an insertion costs constant time on average.
pub(crate) struct KeyedMap<V> {
    hasher: RandomState,
    shards: [Mutex<Shard<V>>; SHARDS],
}

struct Shard<V> {
    entries: HashMap<Arc<str>, V>,
    sweep_at: usize,
}

impl<V: Entry> KeyedMap<V> {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: std::array::from_fn(|_| {
                Mutex::new(Shard {
                    entries: HashMap::new(),
                    sweep_at: SWEEP_FROM,
                })
            }),
        }
    }

    /// Changes the state of `key`, made by `make` where there is none.
    pub(crate) fn with<T>(
        &self,
        key: &str,
        now: Instant,
        make: impl FnOnce() -> V,
        change: impl FnOnce(&Arc<str>, &mut V) -> T,
    ) -> T {
        let mut shard = self.shard(key);
        if !shard.entries.contains_key(key) {
            shard.insert(key, make(), now);
        }
        // The shared key is stored with the value, so that guards clone it without copying.
        let (shared, value) = match shard.entries.get_key_value(key) {
            Some((shared, _)) => (Arc::clone(shared), shard.entries.get_mut(key)),
            None => unreachable!("inserted above, under the same lock"),
        };
        match value {
            Some(value) => change(&shared, value),
            None => unreachable!("inserted above, under the same lock"),
        }
    }

    /// Changes the state of `key` where there is one.
    pub(crate) fn with_existing<T>(
        &self,
        key: &str,
        change: impl FnOnce(&mut V) -> T,
    ) -> Option<T> {
        self.shard(key).entries.get_mut(key).map(change)
    }

    /// What `read` makes of every entry, in no order.
    pub(crate) fn collect<T>(&self, mut read: impl FnMut(&str, &V) -> Option<T>) -> Vec<T> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            all.extend(
                shard
                    .entries
                    .iter()
                    .filter_map(|(key, value)| read(key, value)),
            );
        }
        all
    }

    /// How many keys have state.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| lock(shard).entries.len())
            .sum()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "any bits of the hash will do"
    )]
    fn shard(&self, key: &str) -> MutexGuard<'_, Shard<V>> {
        lock(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }
}

impl<V: Entry> Shard<V> {
    fn insert(&mut self, key: &str, value: V, now: Instant) {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, value| !value.is_idle(now));
            self.sweep_at = (self.entries.len() * 2).max(SWEEP_FROM);
            self.entries.shrink_to(self.sweep_at);
        }
        self.entries.insert(key.into(), value);
    }
}

fn lock<V>(shard: &Mutex<Shard<V>>) -> MutexGuard<'_, Shard<V>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Used(bool);

    impl Entry for Used {
        fn is_idle(&self, _: Instant) -> bool {
            !self.0
        }
    }

    #[test]
    fn keeps_what_is_in_use_and_forgets_keys_that_went() {
        let map = KeyedMap::new();
        let now = Instant::now();
        map.with("kept", now, || Used(true), |_, _| ());
        for n in 0..100_000 {
            map.with(&n.to_string(), now, || Used(false), |_, _| ());
        }
        assert!(map.len() <= SHARDS * SWEEP_FROM + 1, "{} keys", map.len());
        assert!(map.with_existing("kept", |used| used.0).unwrap());
    }
}
