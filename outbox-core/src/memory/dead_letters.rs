//! Listing, replaying and discarding dead letters.

use std::sync::Arc;

use super::state::{DeadRow, Discarded, State};
use crate::clock::{duration_micros, from_micros};
use crate::{DeadLetter, DeadLetterFilter, Page, Replay, error_text};

impl State {
    pub(super) fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Vec<DeadLetter> {
        let after = page.after.map_or(i64::MIN, |after| after.saturating_add(1));
        self.dead
            .range(after..)
            .filter(|(_, dead)| self.matches(filter, dead))
            .take(page.rows.try_into().unwrap_or(usize::MAX))
            .map(|(_, dead)| dead.letter())
            .collect()
    }

    pub(super) fn replay(&mut self, replay: &Replay) -> u64 {
        let mut replayed = 0;
        let back = |dead: &DeadRow| !self.ids.contains_key(&dead.event.id);
        for seq in self.matching(&replay.filter, replay.rows, back) {
            let Some(id) = self.dead.get(&seq).map(|dead| dead.event.id) else {
                continue;
            };
            if self.ids.contains_key(&id) {
                continue; // An earlier letter with this id has just come back: this one stays.
            }
            let Some(dead) = self.exhume(seq) else {
                continue;
            };
            let mut event = dead.event;
            let row = Arc::make_mut(&mut event);
            row.attempts = 0;
            row.replays = row.replays.saturating_add(1);
            row.created_at = from_micros(self.now);
            let expires_in = replay.expires_in.map(duration_micros);
            row.expires_at = expires_in.map(|micros| from_micros(self.now.saturating_add(micros)));
            let steps = i64::try_from(replayed).unwrap_or(i64::MAX);
            let wait = duration_micros(replay.pace).saturating_mul(steps);
            self.open(event, self.now.saturating_add(wait), true);
            replayed += 1;
        }
        replayed
    }

    pub(super) fn discard(&mut self, filter: &DeadLetterFilter, rows: u32, reason: &str) -> u64 {
        let mut discarded = 0;
        for seq in self.matching(filter, rows, |_| true) {
            if let Some(dead) = self.exhume(seq) {
                self.discards.push_back(Discarded {
                    event: dead.event,
                    at: self.now,
                    reason: error_text(reason),
                });
                discarded += 1;
            }
        }
        discarded
    }

    fn matching(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        wanted: impl Fn(&DeadRow) -> bool,
    ) -> Vec<i64> {
        self.dead
            .iter()
            .filter(|(_, dead)| wanted(dead) && self.matches(filter, dead))
            .take(rows.try_into().unwrap_or(usize::MAX))
            .map(|(&seq, _)| seq)
            .collect()
    }

    fn matches(&self, filter: &DeadLetterFilter, dead: &DeadRow) -> bool {
        let event = &dead.event;
        let oldest = filter
            .dead_for
            .map(|age| self.now.saturating_sub(duration_micros(age)));
        filter
            .seqs
            .as_ref()
            .is_none_or(|seqs| seqs.contains(&event.seq))
            && filter
                .ids
                .as_ref()
                .is_none_or(|ids| ids.contains(&event.id))
            && filter
                .event_type
                .as_ref()
                .is_none_or(|name| *name == event.event_type)
            && filter
                .destination
                .as_ref()
                .is_none_or(|name| *name == event.destination)
            && filter
                .key
                .as_ref()
                .is_none_or(|key| Some(key) == event.key.as_ref())
            && filter.reason.is_none_or(|reason| reason == dead.reason)
            && oldest.is_none_or(|oldest| dead.dead_at <= oldest)
    }
}

impl DeadRow {
    pub(super) fn letter(&self) -> DeadLetter {
        DeadLetter::new(
            (*self.event).clone(),
            self.reason,
            from_micros(self.dead_at),
        )
    }
}
