//! Statistics and pruning.

use std::collections::VecDeque;
use std::time::Duration;

use super::state::{Micros, Place, Shape, State};
use crate::clock::duration_micros;
use crate::{Count, Prune, Pruned, Stats};

impl State {
    pub(super) fn stats(&self, limit: u32) -> Stats {
        let limit = u64::from(limit);
        let count = |rows: usize| Count::new(u64::try_from(rows).unwrap_or(u64::MAX), limit);
        let held = self.dests.iter().filter(|dest| dest.held.is_some());
        let parked: u64 = held.map(|dest| dest.open - dest.leased).sum();
        let (due, oldest) = self.due(limit);
        Stats {
            pending: count(self.rows.len()),
            claimed: count(self.leases.len()),
            due: Count::new(due, limit),
            parked: Count::new(parked, limit),
            oldest_due: oldest.map(|at| {
                Duration::from_micros(u64::try_from(self.now.saturating_sub(at)).unwrap_or(0))
            }),
            dead: count(self.dead.len()),
            blocked_keys: count(self.blocks.len()),
        }
    }

    /// How many rows could be claimed, counted up to `limit`, and since when the oldest could.
    fn due(&self, limit: u64) -> (u64, Option<Micros>) {
        let mut due = 0;
        let mut oldest = None;
        let mut see = |seq: i64| {
            let row = self.rows.get(&seq).filter(|row| row.place == Place::Queued);
            let at = row.map(|row| row.available_at);
            oldest = oldest.into_iter().chain(at).min();
            at.is_some()
        };
        for shape in Shape::ALL {
            for &dest in &self.active[shape.index()] {
                if due > limit {
                    break;
                }
                let queue = &self.dests[dest].queues[shape.index()];
                if shape == Shape::Keyed {
                    for lane in queue.iter().filter_map(|(_, lane)| self.lanes.get(lane)) {
                        let ready = lane
                            .rows
                            .iter()
                            .take_while(|seq| due <= limit && see(**seq));
                        due += u64::try_from(ready.count()).unwrap_or(u64::MAX);
                    }
                } else {
                    queue.first().map(|&(_, seq)| see(seq));
                    due += u64::try_from(queue.len()).unwrap_or(u64::MAX);
                }
            }
        }
        (due, oldest)
    }

    pub(super) fn prune(&mut self, prune: &Prune) -> Pruned {
        let most = usize::try_from(prune.rows).unwrap_or(usize::MAX);
        let now = self.now;
        let before = |age: Duration| now.saturating_sub(duration_micros(age));
        let mut pruned = Pruned::default();
        if let Some(before) = prune.published_after.map(before) {
            let published = forget(&mut self.history, most, |one| one.at <= before);
            pruned.published = u64::try_from(published).unwrap_or(u64::MAX);
            forget(&mut self.discards, most, |one| one.at <= before);
        }
        if let Some(before) = prune.dead_after.map(before) {
            let old = self.dead.iter().filter(|(_, dead)| dead.dead_at <= before);
            let old: Vec<i64> = old.map(|(&seq, _)| seq).take(most).collect();
            for seq in old {
                self.exhume(seq);
                pruned.dead += 1;
            }
        }
        if let Some(before) = prune.dedup_after.map(before) {
            let ages = self
                .dedup_ages
                .iter()
                .take_while(|(since, _)| *since <= before);
            let unused = ages.filter(|(_, key)| {
                self.dedup.get(key).is_some_and(|entry| {
                    entry.committed
                        && !self.rows.contains_key(&entry.seq)
                        && !self.dead.contains_key(&entry.seq)
                })
            });
            let unused: Vec<(Micros, String)> = unused.take(most).cloned().collect();
            for age in unused {
                self.dedup.remove(&age.1);
                self.dedup_ages.remove(&age);
                pruned.dedup += 1;
            }
        }
        pruned
    }
}

/// Drops the first ones that are old, up to so many, and returns how many.
fn forget<T>(list: &mut VecDeque<T>, most: usize, is_old: impl Fn(&T) -> bool) -> usize {
    let old = list.iter().take(most).take_while(|one| is_old(one));
    let old = old.count();
    list.drain(..old);
    old
}
