//! Who holds a slot, and who waits for one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use futures::channel::oneshot;
use tower::BoxError;

use crate::keyed_map::{Entry, KeyedMap};

/// The slots of every key; clones share them.
#[derive(Clone)]
pub(super) struct Slots {
    keys: Arc<KeyedMap<Key>>,
}

#[derive(Default)]
struct Key {
    used: usize,
    waiters: VecDeque<oneshot::Sender<Slot>>,
}

impl Entry for Key {
    fn is_idle(&self, _: Instant) -> bool {
        self.used == 0
    }
}

/// A slot, or a place in the queue for one.
pub(super) enum Asked {
    Free(Slot),
    Queued(oneshot::Receiver<Slot>),
    Full,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            keys: Arc::new(KeyedMap::new()),
        }
    }

    /// Takes a slot of `key`, of which there are `limit`.
    pub(super) fn ask(&self, key: &str, limit: usize, queue: bool, now: Instant) -> Asked {
        self.keys.with(key, now, Key::default, |shared, state| {
            if state.used < limit {
                state.used += 1;
                return Asked::Free(Slot::new(self, shared));
            }
            if !queue {
                return Asked::Full;
            }
            if state.waiters.len() == state.waiters.capacity() {
                state.waiters.retain(|waiter| !waiter.is_canceled());
            }
            let (sender, receiver) = oneshot::channel();
            state.waiters.push_back(sender);
            Asked::Queued(receiver)
        })
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Passes a slot to whoever has waited longest. A waiter that went away after the slot was sent
    /// drops it with the channel, which passes it on again.
    fn pass_on(&self, key: &Arc<str>) {
        while let Some(waiter) = self.next(key) {
            match waiter.send(Slot::new(self, key)) {
                Ok(()) => return,
                Err(mut slot) => slot.held = false,
            }
        }
    }

    fn next(&self, key: &str) -> Option<oneshot::Sender<Slot>> {
        self.keys
            .with_existing(key, |state| {
                let waiter = state.waiters.pop_front();
                if waiter.is_none() {
                    state.used = state.used.saturating_sub(1);
                }
                waiter
            })
            .flatten()
    }
}

/// A slot, held by the future of a call; dropping it frees it.
pub struct Slot {
    slots: Slots,
    key: Arc<str>,
    held: bool,
}

impl<T> crate::Pass<T> for Slot {
    fn ended(self, _: Result<&T, &BoxError>) {}
}

impl Slot {
    fn new(slots: &Slots, key: &Arc<str>) -> Self {
        Self {
            slots: slots.clone(),
            key: Arc::clone(key),
            held: true,
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.held {
            self.slots.pass_on(&self.key);
        }
    }
}
