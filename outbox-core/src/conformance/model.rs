//! What a store should hold, in the plainest way: one map of rows, looked through for everything.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Claimed, DeadHeadPolicy, Lease, LeaseStatus, LeaseToken, Outcome};

/// Seconds since the history began.
pub(super) type Seconds = u64;

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) dest: usize,
    pub(super) key: Option<u64>,
    pub(super) kind: usize,
    pub(super) available_at: Seconds,
    pub(super) attempts: u32,
    pub(super) replays: u32,
    token: Option<LeaseToken>,
    until: Seconds,
    dead_at: Seconds,
}

impl Row {
    pub(super) const fn new(dest: usize, key: Option<u64>, kind: usize, at: Seconds) -> Self {
        Self {
            dest,
            key,
            kind,
            available_at: at,
            attempts: 0,
            replays: 0,
            token: None,
            until: 0,
            dead_at: 0,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dest {
    /// `Some(None)`: disabled.
    pub(super) held: Option<Option<Seconds>>,
    pub(super) policy: DeadHeadPolicy,
}

/// What a claim may take.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    pub(super) kind: Option<usize>,
    pub(super) only: Option<usize>,
    pub(super) except: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) now: Seconds,
    pub(super) open: BTreeMap<i64, Row>,
    pub(super) dead: BTreeMap<i64, Row>,
    pub(super) dests: [Dest; 3],
    pub(super) blocked: BTreeSet<(usize, u64)>,
}

/// Questions.
impl Model {
    pub(super) fn is_leased(&self, row: &Row) -> bool {
        row.token.is_some() && row.until > self.now
    }

    pub(super) fn leased(&self) -> usize {
        self.open.values().filter(|row| self.is_leased(row)).count()
    }

    fn is_held(&self, dest: usize) -> bool {
        match self.dests[dest].held {
            None => false,
            Some(None) => true,
            Some(Some(until)) => until > self.now,
        }
    }

    /// The open rows of a key, by number.
    fn run(&self, dest: usize, key: u64) -> impl Iterator<Item = (i64, &Row)> {
        let rows = self.open.iter();
        rows.filter(move |(_, row)| row.dest == dest && row.key == Some(key))
            .map(|(&seq, row)| (seq, row))
    }

    /// Whether a claim could hand out this row first.
    fn is_claimable(&self, seq: i64, row: &Row) -> bool {
        if self.is_held(row.dest) || row.available_at > self.now || self.is_leased(row) {
            return false;
        }
        row.key.is_none_or(|key| {
            !self.blocked.contains(&(row.dest, key))
                && self
                    .run(row.dest, key)
                    .all(|(_, other)| !self.is_leased(other))
                && self
                    .run(row.dest, key)
                    .next()
                    .is_some_and(|(head, _)| head == seq)
        })
    }

    pub(super) fn claimable(&self) -> Vec<i64> {
        let rows = self.open.iter();
        rows.filter(|(seq, row)| self.is_claimable(**seq, row))
            .map(|(&seq, _)| seq)
            .collect()
    }

    pub(super) fn status(&self, lease: Lease) -> LeaseStatus {
        match self.open.get(&lease.seq).and_then(|row| row.token) {
            None => LeaseStatus::Unknown,
            Some(token) if token == lease.token => LeaseStatus::Ours,
            Some(_) => LeaseStatus::Lost,
        }
    }
}

/// Changes.
impl Model {
    /// Checks what a claim brought, and takes it over.
    pub(super) fn claimed(&mut self, events: &[(i64, &Claimed)], filter: &Filter, lease: Seconds) {
        let mut runs: BTreeMap<(usize, u64), Vec<i64>> = BTreeMap::new();
        for &(seq, claimed) in events {
            let Some(row) = self.open.get(&seq) else {
                panic!("{seq} is not open");
            };
            assert!(!self.is_leased(row), "{seq} is leased");
            assert!(row.available_at <= self.now, "{seq} is not due");
            assert!(!self.is_held(row.dest), "the destination of {seq} is held");
            assert!(
                filter.kind.is_none_or(|kind| kind == row.kind),
                "{seq} is of another type"
            );
            assert!(
                filter.only.is_none_or(|dest| dest == row.dest),
                "{seq} is for elsewhere"
            );
            assert!(
                filter.except != Some(row.dest),
                "the destination of {seq} is left out"
            );
            assert_eq!(
                claimed.event.attempts,
                row.attempts + 1,
                "attempts of {seq}"
            );
            assert_eq!(claimed.event.replays, row.replays, "replays of {seq}");
            if let Some(key) = row.key {
                runs.entry((row.dest, key)).or_default().push(seq);
            }
        }
        for ((dest, key), taken) in runs {
            assert!(!self.blocked.contains(&(dest, key)), "key {key} is blocked");
            let in_flight = self.run(dest, key).find(|(_, row)| self.is_leased(row));
            assert!(
                in_flight.is_none(),
                "key {key} has a run in flight, and now {taken:?}"
            );
            let head: Vec<i64> = self
                .run(dest, key)
                .map(|(seq, _)| seq)
                .take(taken.len())
                .collect();
            assert_eq!(
                taken, head,
                "the claim of key {key} is no run from its head"
            );
        }
        let until = self.now + lease;
        for (seq, claimed) in events {
            if let Some(row) = self.open.get_mut(seq) {
                row.attempts += 1;
                row.token = Some(claimed.lease.token);
                row.until = until;
            }
        }
    }

    /// What a settle does where the lease is the caller's. `after` stands for the outcome's delay.
    pub(super) fn settled(
        &mut self,
        lease: Lease,
        outcome: &Outcome,
        after: Seconds,
    ) -> LeaseStatus {
        let status = self.status(lease);
        let now = self.now;
        let Some(row) = self.open.get_mut(&lease.seq) else {
            return status;
        };
        if status != LeaseStatus::Ours {
            return status;
        }
        row.token = None;
        match outcome {
            Outcome::Published => {
                self.open.remove(&lease.seq);
            }
            Outcome::Retry { .. } => row.available_at = now + after,
            Outcome::Defer { .. } => {
                row.available_at = now + after;
                row.attempts = row.attempts.saturating_sub(1);
            }
            Outcome::Release => row.attempts = row.attempts.saturating_sub(1),
            Outcome::Dead { .. } => {
                row.dead_at = now;
                if let Some(row) = self.open.remove(&lease.seq) {
                    if let Some(key) = row.key
                        && self.dests[row.dest].policy == DeadHeadPolicy::Block
                    {
                        self.blocked.insert((row.dest, key));
                    }
                    self.dead.insert(lease.seq, row);
                }
            }
        }
        status
    }

    pub(super) fn extended(&mut self, lease: Lease, by: Seconds) -> LeaseStatus {
        let status = self.status(lease);
        let row = self.open.get(&lease.seq);
        if row.is_some_and(|row| row.key.is_some() && row.token.is_some() && !self.is_leased(row)) {
            return LeaseStatus::Lost;
        }
        let until = self.now + by;
        if let Some(row) = self.open.get_mut(&lease.seq)
            && status == LeaseStatus::Ours
        {
            row.until = until;
        }
        status
    }

    /// All rows with this token go back.
    pub(super) fn claim_released(&mut self, token: LeaseToken) -> u64 {
        let mut released = 0;
        for row in self.open.values_mut() {
            if row.token == Some(token) {
                row.token = None;
                row.attempts = row.attempts.saturating_sub(1);
                released += 1;
            }
        }
        released
    }

    pub(super) fn held_for(&mut self, dest: usize, period: Seconds) {
        let until = self.now + period;
        let held = &mut self.dests[dest].held;
        *held = match *held {
            Some(None) => Some(None),
            Some(Some(earlier)) => Some(Some(earlier.max(until))),
            None => Some(Some(until)),
        };
    }

    pub(super) fn policy_set(&mut self, dest: usize, policy: DeadHeadPolicy) {
        self.dests[dest].policy = policy;
        if policy == DeadHeadPolicy::Skip {
            self.blocked.retain(|(other, _)| *other != dest);
        }
    }

    /// The first `rows` dead letters of the destination come back.
    pub(super) fn replayed(&mut self, dest: Option<usize>, rows: usize) -> u64 {
        let now = self.now;
        let mut count = 0;
        for seq in self.letters(dest, rows) {
            if let Some(mut row) = self.dead.remove(&seq) {
                row.attempts = 0;
                row.replays += 1;
                row.available_at = now;
                self.open.insert(seq, row);
                count += 1;
            }
        }
        self.unblock();
        count
    }

    pub(super) fn discarded(&mut self, dest: Option<usize>) -> u64 {
        let mut count = 0;
        for seq in self.letters(dest, usize::MAX) {
            self.dead.remove(&seq);
            count += 1;
        }
        self.unblock();
        count
    }

    pub(super) fn pruned(&mut self, age: Seconds) -> u64 {
        let before = self.dead.len();
        let now = self.now;
        self.dead.retain(|_, row| row.dead_at + age > now);
        self.unblock();
        u64::try_from(before - self.dead.len()).unwrap_or(u64::MAX)
    }

    fn letters(&self, dest: Option<usize>, rows: usize) -> Vec<i64> {
        let letters = self.dead.iter();
        let letters = letters.filter(|(_, row)| dest.is_none_or(|dest| dest == row.dest));
        letters.map(|(&seq, _)| seq).take(rows).collect()
    }

    /// Ends the blocks of keys with no dead letter left.
    fn unblock(&mut self) {
        let dead = &self.dead;
        self.blocked.retain(|(dest, key)| {
            dead.values()
                .any(|row| row.dest == *dest && row.key == Some(*key))
        });
    }
}
