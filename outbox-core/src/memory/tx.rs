//! The producer's transaction.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::state::{DedupEntry, Micros, State};
use crate::clock::{duration_micros, from_micros};
use crate::{Enqueued, Error, ErrorKind, Event, IdempotencyKey, NewEvent};

/// A transaction on a [`MemoryStore`](super::MemoryStore): what is enqueued through it appears at
/// [`commit`](Self::commit), all at once; dropping it rolls back.
///
/// Numbers are given at the enqueue, as databases do, and are not used again after a rollback.
#[derive(Debug)]
#[must_use = "dropping a transaction rolls it back"]
pub struct MemoryTx {
    shared: Arc<Shared>,
    staged: Vec<Staged>,
    accepted: Vec<IdempotencyKey>,
}

#[derive(Debug)]
struct Staged {
    event: Event,
    available_at: Micros,
    delayed: bool,
}

impl MemoryTx {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            staged: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// Makes the events visible to relays, and the inbox ids final.
    pub fn commit(mut self) {
        let accepted = std::mem::take(&mut self.accepted);
        if !accepted.is_empty() {
            self.shared.with_keys(|keys, _| keys.commit(accepted));
        }
        let staged = std::mem::take(&mut self.staged);
        let mut state = self.shared.lock();
        for Staged {
            event,
            available_at,
            delayed,
        } in staged
        {
            if let Some(key) = &event.dedup_key
                && let Some(entry) = state.dedup.get_mut(key)
            {
                entry.committed = true;
            }
            state.open(Arc::new(event), available_at, delayed);
        }
    }

    /// Forgets the events, as dropping does.
    pub fn rollback(self) {}

    /// The inbox ids that this transaction holds.
    pub(super) const fn accepted(&mut self) -> &mut Vec<IdempotencyKey> {
        &mut self.accepted
    }

    pub(super) fn belongs_to(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    pub(super) fn stage(&mut self, state: &mut State, new: NewEvent) -> Result<Enqueued, Error> {
        if let Some(entry) = new.dedup_key.as_ref().and_then(|key| state.dedup.get(key)) {
            let own = self
                .staged
                .iter()
                .any(|staged| staged.event.seq == entry.seq);
            if !entry.committed && !own {
                let problem = "another open transaction has just used the de-duplication key";
                return Err(Error::new(ErrorKind::Conflict, problem));
            }
            return Ok(Enqueued::duplicate_of(entry.id));
        }
        if state.ids.contains_key(&new.id) {
            let problem = format!("{} belongs to an event that is still open", new.id);
            return Err(Error::invalid_event("id", problem));
        }
        state.last_seq += 1;
        let (now, seq) = (state.now, state.last_seq);
        let from_now = |period: Duration| now.saturating_add(duration_micros(period));
        state.ids.insert(new.id, seq);
        if let Some(key) = &new.dedup_key {
            let entry = DedupEntry {
                id: new.id,
                seq,
                since: now,
                committed: false,
            };
            state.dedup.insert(key.clone(), entry);
            state.dedup_ages.insert((now, key.clone()));
        }
        let answer = Enqueued::stored(new.id);
        let delay = new.delay.filter(|delay| !delay.is_zero());
        self.staged.push(Staged {
            available_at: delay.map_or(now, from_now),
            delayed: delay.is_some(),
            event: Event {
                id: new.id,
                seq,
                event_type: new.event_type,
                destination: new.destination,
                payload: new.payload,
                content_type: new.content_type,
                aggregate_type: new.aggregate_type,
                aggregate_id: new.aggregate_id,
                key: new.key,
                headers: new.headers,
                dedup_key: new.dedup_key,
                created_at: from_micros(now),
                expires_at: new.expires_in.map(|period| from_micros(from_now(period))),
                max_attempts: new.max_attempts,
                attempts: 0,
                replays: 0,
                last_error: None,
            },
        });
        Ok(answer)
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        let accepted = std::mem::take(&mut self.accepted);
        if !accepted.is_empty() {
            self.shared.with_keys(|keys, _| keys.roll_back(accepted));
        }
        if self.staged.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        for staged in &self.staged {
            state.ids.remove(&staged.event.id);
            if let Some(key) = &staged.event.dedup_key
                && let Some(entry) = state.dedup.remove(key)
            {
                state.dedup_ages.remove(&(entry.since, key.clone()));
            }
        }
    }
}
