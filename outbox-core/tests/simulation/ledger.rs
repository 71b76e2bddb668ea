//! What really happened, and the promises that it is checked against.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant, SystemTime};

use outbox_core::{Claimed, Event, EventId, Lease, LeaseStatus, LeaseToken, Outcome};

/// One event, from its enqueue.
struct Entry {
    id: EventId,
    seq: i64,
    key: Option<(String, String)>,
    max_attempts: u32,
    /// The step of its commit; `None` while it is open or where it was rolled back.
    committed: Option<u64>,
    first_claim: Option<u64>,
    lease: Option<(LeaseToken, SystemTime)>,
    /// Attempts by the number of replays.
    attempts: BTreeMap<u32, u32>,
    /// A transport said that the receiver has it.
    acked: bool,
    /// It is a dead letter, or found dead without an attempt.
    dead: bool,
}

use super::world::TIMEOUT;

/// What becomes of notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Told {
    #[default]
    Nobody,
    Digest,
    Printed,
}

/// The book that every part of the play writes in.
#[derive(Default)]
pub(crate) struct Ledger {
    step: u64,
    entries: BTreeMap<i64, Entry>,
    /// The events that are being delivered now, by any relay, and since when.
    live: BTreeMap<u64, (i64, Instant)>,
    met: BTreeSet<&'static str>,
    hasher: DefaultHasher,
    told: Told,
    /// The database's clock has jumped or the process stood still.
    time_broke: bool,
}

impl Ledger {
    /// From now on notes are printed, or go into the digest.
    pub(crate) const fn tell(&mut self, told: Told) {
        self.told = told;
    }

    /// A digest of all that was told.
    pub(crate) fn digest(&self) -> u64 {
        self.hasher.finish()
    }

    pub(crate) fn met(&self) -> impl Iterator<Item = &'static str> {
        self.met.iter().copied()
    }

    /// Notes that something happened.
    pub(crate) fn note(&mut self, at: Duration, what: fmt::Arguments<'_>) {
        self.step += 1;
        if self.told == Told::Nobody {
            return;
        }
        let line = format!("{at:>14.6?} {what}");
        if self.told == Told::Printed {
            print(&line);
        }
        line.hash(&mut self.hasher);
    }

    /// Notes that a kind of fault was met.
    pub(crate) fn meet(&mut self, kind: &'static str) {
        self.met.insert(kind);
    }

    pub(crate) const fn break_time(&mut self) {
        self.time_broke = true;
    }

    pub(crate) fn enqueued(&mut self, event: &outbox_core::NewEvent, max_attempts: u32) -> i64 {
        let seq = self.entries.last_key_value().map_or(1, |(seq, _)| seq + 1);
        let key = event
            .ordering_key()
            .map(|key| (event.destination().to_owned(), key.to_owned()));
        let entry = Entry {
            id: event.event_id(),
            seq,
            key,
            max_attempts,
            committed: None,
            first_claim: None,
            lease: None,
            attempts: BTreeMap::new(),
            acked: false,
            dead: false,
        };
        self.entries.insert(seq, entry);
        seq
    }

    pub(crate) fn committed(&mut self, seqs: &[i64]) {
        self.step += 1;
        for seq in seqs {
            self.entry(*seq).committed = Some(self.step);
        }
    }

    /// Ids of events that were committed, by seq.
    pub(crate) fn expected(&self) -> Vec<EventId> {
        let committed = self
            .entries
            .values()
            .filter(|entry| entry.committed.is_some());
        committed.map(|entry| entry.id).collect()
    }

    pub(crate) fn claimed(&mut self, claimed: &Claimed, now: SystemTime, lease: Duration) {
        let (seq, token, step) = (claimed.lease.seq, claimed.lease.token, self.step);
        let live = |entry: &Entry| {
            entry
                .lease
                .filter(|(held, until)| *until > now && *held != token)
        };
        let entry = self.entry(seq);
        assert_eq!(
            entry.id, claimed.event.id,
            "event {seq} has another's number"
        );
        assert!(
            entry.committed.is_some(),
            "event {seq} is claimed, and not committed"
        );
        assert!(
            live(entry).is_none(),
            "event {seq} is claimed twice at once"
        );
        let taken_over = entry.lease.is_some();
        entry.lease = Some((token, now + lease));
        entry.first_claim.get_or_insert(step);
        if let Some(key) = entry.key.clone() {
            let others = self
                .entries
                .values()
                .filter(|e| e.key.as_ref() == Some(&key));
            let other = others.filter(|e| live(e).is_some()).map(|e| e.seq).next();
            assert!(
                other.is_none(),
                "{key:?} is claimed twice at once: {seq} and {other:?}"
            );
        }
        if taken_over {
            self.meet("taken over");
        }
    }

    /// The store has ended a lease, or told a stale holder.
    pub(crate) fn settled(&mut self, lease: Lease, outcome: &Outcome, status: LeaseStatus) {
        if status != LeaseStatus::Ours {
            if status == LeaseStatus::Lost {
                self.meet("lease lost");
            }
            return;
        }
        let entry = self.entry(lease.seq);
        entry.prove(lease);
        entry.lease = None;
        match outcome {
            Outcome::Published => {
                assert!(
                    entry.acked,
                    "event {} is published and was not delivered",
                    lease.seq
                );
            }
            Outcome::Dead { .. } => {
                entry.dead = true;
                self.meet("dead");
            }
            _ => {}
        }
    }

    pub(crate) fn extended(&mut self, lease: Lease, status: LeaseStatus, until: SystemTime) {
        if status == LeaseStatus::Ours {
            let entry = self.entry(lease.seq);
            entry.prove(lease);
            entry.lease = Some((lease.token, until));
        }
    }

    pub(crate) fn released(&mut self, token: LeaseToken) {
        for entry in self.entries.values_mut() {
            entry.lease = entry.lease.filter(|(held, _)| *held != token);
        }
    }

    /// A relay found it dead without an attempt, as every later one will; the settle follows.
    pub(crate) fn given_up(&mut self, seq: i64) {
        self.entry(seq).dead = true;
    }

    /// A transport is asked to deliver.
    pub(crate) fn attempting(&mut self, event: &Event, now: SystemTime) {
        let calm = !self.time_broke;
        let entry = self.entry(event.seq);
        assert!(
            entry.committed.is_some(),
            "event {} is delivered, and not committed",
            event.seq
        );
        if calm {
            let live = entry.lease.is_some_and(|(_, until)| until > now + TIMEOUT);
            assert!(
                live,
                "event {} may be delivered for longer than its lease",
                event.seq
            );
        }
        let attempts = entry.attempts.entry(event.replays).or_default();
        *attempts += 1;
        assert!(
            *attempts <= entry.max_attempts && event.attempts <= entry.max_attempts,
            "event {} is attempted {attempts} times (by its count {}), and {} are allowed",
            event.seq,
            event.attempts,
            entry.max_attempts,
        );
        let (key, first_claim) = (entry.key.clone(), entry.first_claim);
        let Some(key) = key else { return };
        for (seq, before) in self.entries.range(..event.seq) {
            // What was committed after the first claim came too late to be waited for.
            let known = before
                .committed
                .is_some_and(|step| Some(step) < first_claim);
            let open = before.key.as_ref() == Some(&key) && known && !before.acked && !before.dead;
            assert!(!open, "{key:?}: event {} goes before {seq}", event.seq);
        }
    }

    /// A delivery is under way: the only one of its event and of its key. Returns its number.
    ///
    /// One that has run out of time counts no more: its relay has aborted it, and its task is
    /// dropped when it comes to that.
    pub(crate) fn entered(&mut self, seq: i64, now: Instant) -> u64 {
        if !self.time_broke {
            let key = self.entry(seq).key.clone();
            let in_time = |since: Instant| now.saturating_duration_since(since) < TIMEOUT;
            for (live, since) in self.live.values() {
                let same = *live == seq || (key.is_some() && self.entries[live].key == key);
                assert!(
                    !same || !in_time(*since),
                    "events {seq} and {live} are delivered at once"
                );
            }
        }
        self.step += 1;
        self.live.insert(self.step, (seq, now));
        self.step
    }

    /// A delivery has ended.
    pub(crate) fn left(&mut self, number: u64) {
        self.live.remove(&number);
    }

    /// It turned out that nothing was attempted.
    pub(crate) fn not_attempted(&mut self, event: &Event) {
        if let Some(attempts) = self.entry(event.seq).attempts.get_mut(&event.replays) {
            *attempts -= 1;
        }
    }

    pub(crate) fn acked(&mut self, event: &Event) {
        self.entry(event.seq).acked = true;
        self.meet("acked");
    }

    fn entry(&mut self, seq: i64) -> &mut Entry {
        self.entries
            .get_mut(&seq)
            .unwrap_or_else(|| panic!("event {seq} was never enqueued"))
    }
}

#[expect(clippy::print_stdout, reason = "a replay is read by people")]
fn print(line: &str) {
    println!("{line}");
}

impl Entry {
    fn prove(&self, lease: Lease) {
        let held = self.lease.map(|(token, _)| token);
        assert_eq!(
            held,
            Some(lease.token),
            "a stale holder changed event {}",
            self.seq
        );
    }
}
