//! The rows and the indexes over them.
//!
//! Every open row stands in one place: under a lease, waiting for its time, or queued. Queues are
//! kept for each destination and [shape](Shape), and only destinations that have something to claim
//! are *active*, so that a claim never walks over rows it can't take. The rows of a destination that
//! is held stay where they are: it is not active, and they are *parked* by that.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::{DeadHeadPolicy, DeathReason, Event, EventId, LeaseToken};

/// Microseconds since the epoch.
pub(super) type Micros = i64;

/// The most rows whose time has come that one call moves to their queues.
const WAKE: usize = 8_192;

/// What kind of queue a row waits in. Each has its share of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Never delayed.
    Fresh,
    /// Delayed, retried, deferred or replayed.
    Due,
    /// Has an ordering key; the queue holds lanes.
    Keyed,
}

impl Shape {
    pub(super) const ALL: [Self; 3] = [Self::Fresh, Self::Due, Self::Keyed];

    pub(super) const fn index(self) -> usize {
        match self {
            Self::Fresh => 0,
            Self::Due => 1,
            Self::Keyed => 2,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Queued,
    Delayed,
    Leased(Micros),
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) event: Arc<Event>,
    pub(super) dest: usize,
    pub(super) lane: Option<i64>,
    pub(super) available_at: Micros,
    pub(super) shape: Shape,
    pub(super) place: Place,
    pub(super) token: Option<LeaseToken>,
}

/// The open events of one destination and key.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) dest: usize,
    pub(super) key: String,
    pub(super) rows: BTreeSet<i64>,
    pub(super) leased: usize,
    pub(super) dead: BTreeSet<i64>,
    pub(super) blocked: bool,
    /// Its place in the queue: lanes line up as they become ready.
    ready: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// `None`: disabled.
    pub(super) until: Option<Micros>,
    pub(super) reason: String,
}

/// A queue's entries: rows by (time, seq), lanes by (turn, lane).
pub(super) type Queue = BTreeSet<(i64, i64)>;

#[derive(Debug, Default)]
pub(super) struct Dest {
    pub(super) name: Arc<str>,
    pub(super) queues: [Queue; 3],
    pub(super) open: u64,
    pub(super) leased: u64,
    pub(super) held: Option<Held>,
    pub(super) policy: DeadHeadPolicy,
}

#[derive(Debug)]
pub(super) struct DeadRow {
    pub(super) event: Arc<Event>,
    pub(super) reason: DeathReason,
    pub(super) dead_at: Micros,
}

/// A published event.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) event: Arc<Event>,
    pub(super) at: Micros,
}

/// A dead letter that an operator discarded.
#[derive(Debug)]
pub(super) struct Discarded {
    pub(super) event: Arc<Event>,
    pub(super) at: Micros,
    pub(super) reason: String,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) seq: i64,
    pub(super) since: Micros,
}

#[derive(Debug)]
pub(super) struct DedupEntry {
    pub(super) id: EventId,
    pub(super) seq: i64,
    pub(super) since: Micros,
    pub(super) committed: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) now: Micros,
    pub(super) last_seq: i64,
    pub(super) rows: HashMap<i64, Row>,
    /// The ids of open rows, those of open transactions included.
    pub(super) ids: HashMap<EventId, i64>,
    pub(super) dests: Vec<Dest>,
    pub(super) dest_index: BTreeMap<Arc<str>, usize>,
    pub(super) lanes: HashMap<i64, Lane>,
    pub(super) lane_index: HashMap<(usize, String), i64>,
    last_lane: i64,
    last_turn: i64,
    /// Destinations that a claim can take from, for each shape.
    pub(super) active: [BTreeSet<usize>; 3],
    pub(super) cursor: [usize; 3],
    pub(super) turn: usize,
    pub(super) delayed: BTreeSet<(Micros, i64)>,
    pub(super) leases: BTreeSet<(Micros, i64)>,
    pub(super) holds: BTreeSet<(Micros, usize)>,
    pub(super) dead: BTreeMap<i64, DeadRow>,
    pub(super) blocks: BTreeMap<(String, String), Block>,
    pub(super) history: VecDeque<Finished>,
    pub(super) discards: VecDeque<Discarded>,
    pub(super) dedup: HashMap<String, DedupEntry>,
    pub(super) dedup_ages: BTreeSet<(Micros, String)>,
}

/// Opening and closing rows.
impl State {
    pub(super) fn dest(&mut self, name: &str) -> usize {
        if let Some(&dest) = self.dest_index.get(name) {
            return dest;
        }
        let name: Arc<str> = name.into();
        self.dests.push(Dest {
            name: Arc::clone(&name),
            ..Dest::default()
        });
        self.dest_index.insert(name, self.dests.len() - 1);
        self.dests.len() - 1
    }

    fn lane(&mut self, dest: usize, key: &str) -> i64 {
        let full_key = (dest, key.to_owned());
        if let Some(&lane) = self.lane_index.get(&full_key) {
            return lane;
        }
        self.last_lane += 1;
        self.lanes.insert(
            self.last_lane,
            Lane {
                dest,
                key: key.to_owned(),
                rows: BTreeSet::new(),
                leased: 0,
                dead: BTreeSet::new(),
                blocked: false,
                ready: None,
            },
        );
        self.lane_index.insert(full_key, self.last_lane);
        self.last_lane
    }

    /// Adds an open row.
    pub(super) fn open(&mut self, event: Arc<Event>, available_at: Micros, delayed: bool) {
        let seq = event.seq;
        let dest = self.dest(&event.destination);
        let lane = event.key.as_deref().map(|key| self.lane(dest, key));
        let shape = match lane {
            Some(_) => Shape::Keyed,
            None if delayed => Shape::Due,
            None => Shape::Fresh,
        };
        if let Some(lane) = lane.and_then(|lane| self.lanes.get_mut(&lane)) {
            lane.rows.insert(seq);
        }
        self.dests[dest].open += 1;
        self.ids.insert(event.id, seq);
        self.rows.insert(
            seq,
            Row {
                event,
                dest,
                lane,
                available_at,
                shape,
                place: Place::Queued,
                token: None,
            },
        );
        self.shelve(seq);
    }

    /// Removes an open row.
    pub(super) fn close(&mut self, seq: i64) -> Option<Row> {
        self.pull(seq);
        let row = self.rows.remove(&seq)?;
        self.ids.remove(&row.event.id);
        self.dests[row.dest].open -= 1;
        if let Some(id) = row.lane {
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.rows.remove(&seq);
            }
            self.refresh(id);
        }
        Some(row)
    }
}

/// Moving rows between places.
impl State {
    /// Takes a row out of the place it stands in.
    fn pull(&mut self, seq: i64) {
        let Some(row) = self.rows.get(&seq) else {
            return;
        };
        match row.place {
            Place::Leased(until) => {
                self.leases.remove(&(until, seq));
                self.dests[row.dest].leased -= 1;
                if let Some(lane) = row.lane.and_then(|lane| self.lanes.get_mut(&lane)) {
                    lane.leased -= 1;
                }
            }
            Place::Delayed => {
                self.delayed.remove(&(row.available_at, seq));
            }
            Place::Queued if row.lane.is_none() => {
                let (dest, shape, entry) = (row.dest, row.shape, row.entry());
                self.dests[dest].queues[shape.index()].remove(&entry);
                self.activate(dest, shape);
            }
            Place::Queued => {}
        }
    }

    /// Puts a row that stands nowhere where its time says.
    fn shelve(&mut self, seq: i64) {
        let now = self.now;
        let Some(row) = self.rows.get_mut(&seq) else {
            return;
        };
        let (dest, shape, lane, entry) = (row.dest, row.shape, row.lane, row.entry());
        if row.available_at > now {
            row.place = Place::Delayed;
            self.delayed.insert((row.available_at, seq));
        } else {
            row.place = Place::Queued;
            if lane.is_none() {
                self.dests[dest].queues[shape.index()].insert(entry);
                self.activate(dest, shape);
            }
        }
        if let Some(lane) = lane {
            self.refresh(lane);
        }
    }

    /// Puts a row under a lease.
    pub(super) fn lease(&mut self, seq: i64, token: LeaseToken, until: Micros) {
        self.pull(seq);
        let Some(row) = self.rows.get_mut(&seq) else {
            return;
        };
        row.place = Place::Leased(until);
        row.token = Some(token);
        self.leases.insert((until, seq));
        self.dests[row.dest].leased += 1;
        if let Some(id) = row.lane {
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.leased += 1;
            }
            self.refresh(id);
        }
    }

    /// Ends a lease and lets the row be claimed from `available_at` on.
    pub(super) fn requeue(&mut self, seq: i64, available_at: Option<Micros>) {
        self.pull(seq);
        if let Some(row) = self.rows.get_mut(&seq) {
            row.token = None;
            if let Some(at) = available_at {
                row.available_at = at;
                if row.lane.is_none() {
                    row.shape = Shape::Due;
                }
            }
        }
        self.shelve(seq);
    }

    /// Queues the rows whose delay or lease has ended, and frees the destinations whose hold has.
    pub(super) fn wake(&mut self, now: Micros) {
        self.now = self.now.max(now);
        let now = self.now;
        for _ in 0..WAKE {
            match self.delayed.first() {
                Some(&(at, seq)) if at <= now => {
                    self.pull(seq);
                    self.shelve(seq);
                }
                _ => break,
            }
        }
        for _ in 0..WAKE {
            match self.leases.first() {
                Some(&(until, seq)) if until <= now => {
                    self.pull(seq);
                    self.shelve(seq);
                }
                _ => break,
            }
        }
        while let Some(&(until, dest)) = self.holds.first() {
            if until > now {
                break;
            }
            self.holds.remove(&(until, dest));
            self.set_hold(dest, None);
        }
    }

    /// Holds a destination, or frees it. No row is touched.
    pub(super) fn set_hold(&mut self, dest: usize, held: Option<Held>) {
        let entry = &mut self.dests[dest];
        if let Some(until) = entry.held.as_ref().and_then(|held| held.until) {
            self.holds.remove(&(until, dest));
        }
        if let Some(until) = held.as_ref().and_then(|held| held.until) {
            self.holds.insert((until, dest));
        }
        entry.held = held;
        for shape in Shape::ALL {
            self.activate(dest, shape);
        }
    }

    fn activate(&mut self, dest: usize, shape: Shape) {
        let entry = &self.dests[dest];
        if entry.held.is_none() && !entry.queues[shape.index()].is_empty() {
            self.active[shape.index()].insert(dest);
        } else {
            self.active[shape.index()].remove(&dest);
        }
    }

    /// Lists a lane for claims, or takes it off the list, by the state of its rows; forgets it when
    /// nothing is left of it.
    pub(super) fn refresh(&mut self, id: i64) {
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        let head = lane.rows.first().and_then(|head| self.rows.get(head));
        let ready = !lane.blocked
            && lane.leased == 0
            && head.is_some_and(|head| head.place == Place::Queued);
        let dest = lane.dest;
        let queue = &mut self.dests[dest].queues[Shape::Keyed.index()];
        match lane.ready {
            None if ready => {
                self.last_turn += 1;
                lane.ready = Some(self.last_turn);
                queue.insert((self.last_turn, id));
            }
            Some(since) if !ready => {
                lane.ready = None;
                queue.remove(&(since, id));
            }
            _ => {}
        }
        if lane.rows.is_empty() && lane.dead.is_empty() {
            let full_key = (dest, std::mem::take(&mut lane.key));
            self.lanes.remove(&id);
            self.lane_index.remove(&full_key);
        }
        self.activate(dest, Shape::Keyed);
    }
}

/// The dead letters of a key.
impl State {
    /// Adds a dead letter, which blocks its key where the destination says so.
    pub(super) fn bury(&mut self, row: Row, reason: DeathReason) {
        let (seq, now) = (row.event.seq, self.now);
        if let Some(key) = row.event.key.as_deref() {
            let id = self.lane(row.dest, key);
            let block = self.dests[row.dest].policy == DeadHeadPolicy::Block;
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.dead.insert(seq);
                lane.blocked |= block;
            }
            if block {
                self.blocks
                    .entry((row.event.destination.clone(), key.to_owned()))
                    .or_insert(Block { seq, since: now });
            }
            self.refresh(id);
        }
        let dead = DeadRow {
            event: row.event,
            reason,
            dead_at: now,
        };
        self.dead.insert(seq, dead);
    }

    /// Takes a dead letter out. The last one of a key ends its block.
    pub(super) fn exhume(&mut self, seq: i64) -> Option<DeadRow> {
        let dead = self.dead.remove(&seq)?;
        if let Some(key) = dead.event.key.as_deref() {
            let dest = self.dest(&dead.event.destination);
            let id = self.lane(dest, key);
            let last = self.lanes.get_mut(&id).is_some_and(|lane| {
                lane.dead.remove(&seq);
                lane.dead.is_empty()
            });
            if last {
                self.unblock(id);
            }
        }
        Some(dead)
    }

    pub(super) fn unblock(&mut self, id: i64) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.blocked = false;
            let name = self.dests[lane.dest].name.to_string();
            self.blocks.remove(&(name, lane.key.clone()));
        }
        self.refresh(id);
    }
}

impl Row {
    /// The row's entry in its queue: fresh rows by number, others by time.
    fn entry(&self) -> (Micros, i64) {
        let at = match self.shape {
            Shape::Fresh => 0,
            Shape::Due | Shape::Keyed => self.available_at,
        };
        (at, self.event.seq)
    }
}
