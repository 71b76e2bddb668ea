//! Several secrets at once, each with the time in which it counts: how secrets are rotated.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

/// A secret with a name and, where wanted, the time in which it counts.
///
/// The name is for people: it appears in logs and in [`Verified`](crate::Verified), so it must not
/// tell anything about the secret.
#[derive(Debug, Clone)]
pub struct Key<K> {
    name: Arc<str>,
    secret: K,
    not_before: Option<SystemTime>,
    not_after: Option<SystemTime>,
    uses: Arc<AtomicU64>,
}

impl<K> Key<K> {
    /// A secret that counts always.
    pub fn new(name: impl Into<Arc<str>>, secret: K) -> Self {
        Self {
            name: name.into(),
            secret,
            not_before: None,
            not_after: None,
            uses: Arc::default(),
        }
    }

    /// It does not count before this instant. Default: no bound.
    #[must_use]
    pub const fn not_before(mut self, at: SystemTime) -> Self {
        self.not_before = Some(at);
        self
    }

    /// It does not count from this instant on. Default: no bound.
    #[must_use]
    pub const fn not_after(mut self, at: SystemTime) -> Self {
        self.not_after = Some(at);
        self
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether it counts at this instant.
    #[must_use]
    pub fn is_active(&self, at: SystemTime) -> bool {
        self.not_before.is_none_or(|t| t <= at) && self.not_after.is_none_or(|t| at < t)
    }

    pub(crate) const fn secret(&self) -> &K {
        &self.secret
    }

    pub(crate) fn count_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }
}

/// Secrets in order of preference: the newest first. A sender that can carry one signature only
/// uses the first that counts; a verifier tries every one that counts.
#[derive(Debug, Clone)]
pub struct KeyRing<K> {
    keys: Vec<Key<K>>,
}

impl<K> KeyRing<K> {
    /// The keys, the preferred first.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = Key<K>>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
        }
    }

    /// The keys that count at this instant, the preferred first.
    pub fn active(&self, at: SystemTime) -> impl Iterator<Item = &Key<K>> {
        self.keys.iter().filter(move |key| key.is_active(at))
    }

    /// The ring with `next` in front; the keys that were there end `overlap` after `now`, unless
    /// they end sooner. Keys that have ended by `now` are left out.
    ///
    /// Both sides rotate: the receiver first, so that it knows the new secret before it is used.
    #[must_use]
    pub fn rotated(&self, next: Key<K>, now: SystemTime, overlap: Duration) -> Self
    where
        K: Clone,
    {
        let end = now.checked_add(overlap);
        let kept = self
            .keys
            .iter()
            .filter(|k| k.not_after.is_none_or(|t| t > now));
        let ending = kept.cloned().map(|mut key| {
            key.not_after = match (key.not_after, end) {
                (Some(own), Some(end)) => Some(own.min(end)),
                (own, end) => own.or(end),
            };
            key
        });
        Self::new(std::iter::once(next).chain(ending))
    }

    /// How often each key has signed or verified, by name: a key that no receiver's traffic uses any
    /// more can go.
    #[must_use]
    pub fn uses(&self) -> Vec<(Arc<str>, u64)> {
        let uses = |key: &Key<K>| (key.name.clone(), key.uses.load(Ordering::Relaxed));
        self.keys.iter().map(uses).collect()
    }
}

/// A ring that can be replaced while schemes use it. Cheap to clone; the clones share the ring.
pub struct SharedRing<K>(Arc<RwLock<Arc<KeyRing<K>>>>);

impl<K> SharedRing<K> {
    /// The ring as it is now.
    #[must_use]
    pub fn current(&self) -> Arc<KeyRing<K>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts another ring in its place, for every clone. Counts of use go on for keys that are in
    /// both under the same name.
    pub fn replace(&self, mut ring: KeyRing<K>) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for key in &mut ring.keys {
            if let Some(old) = current.keys.iter().find(|old| old.name == key.name) {
                key.uses = old.uses.clone();
            }
        }
        *current = Arc::new(ring);
    }
}

impl<K> Clone for SharedRing<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: fmt::Debug> fmt::Debug for SharedRing<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.current().fmt(f)
    }
}

impl<K> From<KeyRing<K>> for SharedRing<K> {
    fn from(ring: KeyRing<K>) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(ring))))
    }
}

impl<K> From<Key<K>> for SharedRing<K> {
    fn from(key: Key<K>) -> Self {
        KeyRing::new([key]).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn names(ring: &KeyRing<()>, when: SystemTime) -> Vec<String> {
        ring.active(when).map(|k| k.name().to_string()).collect()
    }

    #[test]
    fn a_key_counts_from_not_before_until_not_after() {
        let ring = KeyRing::new([Key::new("a", ()).not_before(at(10)).not_after(at(20))]);
        assert!(names(&ring, at(9)).is_empty());
        assert_eq!(names(&ring, at(10)), ["a"]);
        assert!(names(&ring, at(20)).is_empty());
    }

    #[test]
    fn rotation_overlaps_and_drops_what_has_ended() {
        let ring = KeyRing::new([
            Key::new("old", ()),
            Key::new("short", ()).not_after(at(105)),
            Key::new("ended", ()).not_after(at(100)),
        ]);
        let ring = ring.rotated(Key::new("new", ()), at(100), Duration::from_secs(60));
        assert_eq!(ring.uses().len(), 3);
        assert_eq!(names(&ring, at(100)), ["new", "old", "short"]);
        assert_eq!(names(&ring, at(105)), ["new", "old"]);
        assert_eq!(names(&ring, at(160)), ["new"]);
    }

    #[test]
    fn an_absurd_overlap_keeps_the_old_key() {
        let ring = KeyRing::new([Key::new("old", ())]);
        let ring = ring.rotated(Key::new("new", ()), at(100), Duration::MAX);
        assert_eq!(names(&ring, at(1 << 40)), ["new", "old"]);
    }

    #[test]
    fn a_replaced_ring_keeps_the_counts_and_reaches_every_clone() {
        let shared = SharedRing::from(Key::new("a", ()));
        shared.current().keys[0].count_use();
        let clone = shared.clone();
        shared.replace(KeyRing::new([Key::new("b", ()), Key::new("a", ())]));
        assert_eq!(clone.current().uses(), [("b".into(), 0), ("a".into(), 1)]);
    }
}
