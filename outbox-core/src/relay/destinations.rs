//! What goes on at each destination: attempts, runs that wait, pauses.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::runs::Run;

/// Idle destinations are forgotten when this many are known.
const KNOWN: usize = 1_024;
/// The most destinations that a claim leaves out by name.
const EXCLUDED: usize = 500;

pub(super) struct Destination {
    pub(super) name: Arc<str>,
    pub(super) active: usize,
    pub(super) waiting: VecDeque<Run>,
    pub(super) paused: Option<Instant>,
    /// It stands among the turns.
    has_turn: bool,
}

pub(super) struct Destinations {
    limit: usize,
    ids: HashMap<Arc<str>, usize>,
    all: Vec<Option<Destination>>,
    free: Vec<usize>,
    /// Known destinations at their limit.
    full: usize,
    /// Destinations with a pause that may not be over.
    paused: usize,
    /// Events that wait, over all.
    waiting: usize,
    /// Where runs wait that a free slot could take, and perhaps others; in turn.
    turns: VecDeque<usize>,
    sweep_at: usize,
}

impl Destinations {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            ids: HashMap::new(),
            all: Vec::new(),
            free: Vec::new(),
            full: 0,
            paused: 0,
            waiting: 0,
            turns: VecDeque::new(),
            sweep_at: KNOWN,
        }
    }

    /// The number of a destination, for as long as something goes on there.
    pub(super) fn id(&mut self, name: &str) -> usize {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let name: Arc<str> = name.into();
        let destination = Some(Destination {
            name: Arc::clone(&name),
            active: 0,
            waiting: VecDeque::new(),
            paused: None,
            has_turn: false,
        });
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[id] = destination;
        self.ids.insert(name, id);
        id
    }

    /// Forgets destinations where nothing goes on, now and then. Numbers are then given out anew.
    pub(super) fn tidy(&mut self, now: Instant) {
        if self.ids.len() < self.sweep_at {
            return;
        }
        for (id, entry) in self.all.iter_mut().enumerate() {
            let idle = |d: &mut Destination| {
                d.active == 0 && d.waiting.is_empty() && d.paused.is_none_or(|until| until <= now)
            };
            if let Some(gone) = entry.take_if(|d| idle(d)) {
                self.paused -= usize::from(gone.paused.is_some());
                self.ids.remove(&gone.name);
                self.free.push(id);
            }
        }
        self.sweep_at = KNOWN.max(2 * self.ids.len());
    }

    pub(super) fn get(&self, id: usize) -> Option<&Destination> {
        self.all.get(id)?.as_ref()
    }

    fn get_mut(&mut self, id: usize) -> Option<&mut Destination> {
        self.all.get_mut(id)?.as_mut()
    }

    /// Takes one of the destination's places, if one is free.
    pub(super) fn enter(&mut self, id: usize) -> bool {
        let limit = self.limit;
        let Some(destination) = self.get_mut(id).filter(|d| d.active < limit) else {
            return false;
        };
        destination.active += 1;
        if destination.active == limit {
            self.full += 1;
        }
        true
    }

    /// Gives a place back. True where it was the last one taken: claims left the destination out.
    pub(super) fn leave(&mut self, id: usize) -> bool {
        let limit = self.limit;
        let Some(destination) = self.get_mut(id) else {
            return false;
        };
        let was_full = destination.active == limit;
        destination.active = destination.active.saturating_sub(1);
        self.full -= usize::from(was_full);
        self.queue(id);
        was_full
    }

    /// Events that wait for a place or a slot, over all destinations.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn wait(&mut self, id: usize, run: Run) {
        self.waiting += run.len();
        if let Some(destination) = self.get_mut(id) {
            destination.waiting.push_back(run);
        }
        self.queue(id);
    }

    /// The run whose turn it is to have a slot, at a place of its destination.
    pub(super) fn next_turn(&mut self) -> Option<(usize, Run)> {
        while let Some(id) = self.turns.pop_front() {
            if let Some(destination) = self.get_mut(id) {
                destination.has_turn = false;
            }
            // A destination without a place has its turn again when it has one.
            if !self.enter(id) {
                continue;
            }
            let run = self.get_mut(id).and_then(|d| d.waiting.pop_front());
            let Some(run) = run else {
                self.leave(id);
                continue;
            };
            self.waiting -= run.len();
            self.queue(id);
            return Some((id, run));
        }
        None
    }

    /// Gives the destination a turn, if it can use one.
    fn queue(&mut self, id: usize) {
        let limit = self.limit;
        if let Some(destination) = self.get_mut(id)
            && destination.active < limit
            && !destination.waiting.is_empty()
            && !std::mem::replace(&mut destination.has_turn, true)
        {
            self.turns.push_back(id);
        }
    }

    /// Takes the waiting runs that are not wanted any longer.
    pub(super) fn drain_waiting(&mut self, unwanted: impl Fn(usize, &Run) -> bool) -> Vec<Run> {
        let mut gone = Vec::new();
        if self.waiting == 0 {
            return gone;
        }
        for (id, entry) in self.all.iter_mut().enumerate() {
            if let Some(destination) = entry {
                let waiting = std::mem::take(&mut destination.waiting);
                let (out, stay): (VecDeque<_>, VecDeque<_>) =
                    waiting.into_iter().partition(|run| unwanted(id, run));
                destination.waiting = stay;
                gone.extend(out);
            }
        }
        self.waiting -= gone.iter().map(Run::len).sum::<usize>();
        gone
    }

    pub(super) fn waiting_runs(&self) -> impl Iterator<Item = &Run> {
        self.all.iter().flatten().flat_map(|d| &d.waiting)
    }

    /// Leaves the destination alone until then, or longer if it is to be anyway.
    pub(super) fn pause(&mut self, id: usize, until: Instant) {
        let Some(destination) = self.get_mut(id) else {
            return;
        };
        let fresh = destination.paused.is_none();
        destination.paused = destination.paused.max(Some(until));
        self.paused += usize::from(fresh);
    }

    /// Until when the destination is left alone.
    pub(super) fn paused(&self, id: usize, now: Instant) -> Option<Instant> {
        if self.paused == 0 {
            return None;
        }
        self.get(id)?.paused.filter(|until| *until > now)
    }

    /// The names that a claim should leave out now.
    pub(super) fn excluded(&mut self, now: Instant) -> Vec<String> {
        if self.full == 0 && self.paused == 0 {
            return Vec::new();
        }
        let mut excluded = Vec::new();
        for destination in self.all.iter_mut().flatten() {
            if destination.paused.take_if(|until| *until <= now).is_some() {
                self.paused -= 1;
            }
            let out = destination.active >= self.limit || destination.paused.is_some();
            if out && excluded.len() < EXCLUDED {
                excluded.push(destination.name.to_string());
            }
        }
        excluded
    }
}
