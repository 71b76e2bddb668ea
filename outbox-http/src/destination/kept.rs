//! What is known of stored destinations, bounded in number.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::time::Instant;

use super::{DestinationRecord, Endpoint, Resolution};

/// An answer, or the text of an error that stands in its place.
pub(super) type Answer = Result<Resolution, Arc<str>>;

/// Entries by name, in two halves: when the young one is full it becomes the old one, whose entries
/// go unless they are asked for again.
pub(super) struct Kept {
    half: usize,
    halves: Mutex<Halves>,
}

#[derive(Default)]
struct Halves {
    young: HashMap<String, Arc<Entry>>,
    old: HashMap<String, Arc<Entry>>,
}

impl Kept {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            half: capacity.div_ceil(2),
            halves: Mutex::default(),
        }
    }

    /// The entry of this name, an empty one where there was none.
    pub(super) fn entry(&self, name: &str) -> Arc<Entry> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = halves.young.get(name) {
            return entry.clone();
        }
        let entry = halves.old.remove(name).unwrap_or_default();
        if halves.young.len() >= self.half {
            halves.old = mem::take(&mut halves.young);
        }
        halves.young.insert(name.to_owned(), entry.clone());
        entry
    }

    pub(super) fn forget(&self, name: &str) {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        halves.young.remove(name);
        halves.old.remove(name);
    }

    pub(super) fn clear(&self) {
        *self.halves.lock().unwrap_or_else(PoisonError::into_inner) = Halves::default();
    }
}

/// What is known of one destination. Whoever looks it up holds `lookup`.
#[derive(Default)]
pub(super) struct Entry {
    known: RwLock<Option<Known>>,
    pub(super) lookup: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
pub(super) struct Known {
    answer: Answer,
    /// What the endpoint was made of.
    record: Option<DestinationRecord>,
    fresh_until: Instant,
    stale_until: Instant,
}

impl Known {
    pub(super) const fn new(answer: Answer, fresh_until: Instant, stale_until: Instant) -> Self {
        Self {
            answer,
            record: None,
            fresh_until,
            stale_until,
        }
    }

    pub(super) fn of(mut self, record: DestinationRecord) -> Self {
        self.record = Some(record);
        self
    }
}

impl Entry {
    /// The answer, where it needn't be looked up.
    pub(super) fn fresh(&self, now: Instant) -> Option<Answer> {
        self.read(|known| (now < known.fresh_until).then(|| known.answer.clone()))
    }

    /// The answer that counts while it is looked up anew, or can't be.
    pub(super) fn stale(&self, now: Instant) -> Option<Resolution> {
        self.read(|known| match &known.answer {
            Ok(answer) if now < known.stale_until => Some(answer.clone()),
            _ => None,
        })
    }

    /// The endpoint that was made of this very record.
    pub(super) fn endpoint_of(&self, record: &DestinationRecord) -> Option<Arc<Endpoint>> {
        self.read(|known| match &known.answer {
            Ok(Resolution::Endpoint(endpoint)) if known.record.as_ref() == Some(record) => {
                Some(endpoint.clone())
            }
            _ => None,
        })
    }

    pub(super) fn set(&self, known: Known) -> Answer {
        let answer = known.answer.clone();
        self.write(|place| *place = Some(known));
        answer
    }

    /// Doesn't look up again before this instant.
    pub(super) fn keep_until(&self, until: Instant) {
        self.write(|place| {
            if let Some(known) = place {
                known.fresh_until = until.min(known.stale_until);
            }
        });
    }

    fn read<T>(&self, see: impl FnOnce(&Known) -> Option<T>) -> Option<T> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().and_then(see)
    }

    fn write(&self, change: impl FnOnce(&mut Option<Known>)) {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
    }
}
