//! Choosing what a claim takes: a share for each shape, destinations in turn, keys by runs.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::state::{Micros, Place, Shape, State};
use crate::clock::{duration_micros, from_micros};
use crate::{Claim, ClaimRequest, Claimed, DeadHeadPolicy, DestinationFilter, Lease};

/// The rows of a key that are taken before other keys have their turn; the run goes on where rows
/// are left over.
const RUN: usize = 16;

struct Picker<'a> {
    state: &'a mut State,
    request: &'a ClaimRequest,
    until: Micros,
    rows: usize,
    bytes: u64,
    taken: Vec<Claimed>,
}

/// Destinations with rows of one shape, and how far each was looked through.
struct Turn {
    shape: Shape,
    dests: VecDeque<(usize, Option<(Micros, i64)>)>,
    /// Runs that were cut at [`RUN`], by the last row.
    runs: VecDeque<(i64, i64)>,
    taken: usize,
}

pub(super) fn claim(state: &mut State, request: &ClaimRequest) -> Claim {
    let rows = usize::try_from(request.rows.get()).unwrap_or(usize::MAX);
    let until = state.now.saturating_add(duration_micros(request.lease));
    let mut picker = Picker {
        state,
        request,
        until,
        rows,
        bytes: request.bytes,
        taken: Vec::new(),
    };
    picker.run();
    let mut events = picker.taken;
    events.sort_unstable_by_key(|claimed| claimed.lease.seq);
    Claim {
        events,
        undecodable: Vec::new(),
        next_due: next_due(state),
    }
}

/// When the next delayed row falls due or the next hold with rows behind it ends.
fn next_due(state: &State) -> Option<std::time::Duration> {
    let row = state.delayed.first().map(|&(at, _)| at);
    let mut holds = state.holds.iter();
    let hold = holds
        .find(|&&(_, dest)| state.dests[dest].open > 0)
        .map(|&(at, _)| at);
    let at = row.into_iter().chain(hold).min()?;
    let micros = u64::try_from(at.saturating_sub(state.now)).unwrap_or(0);
    Some(std::time::Duration::from_micros(micros))
}

impl Picker<'_> {
    fn run(&mut self) {
        // Shares: the shape that has taken least goes next, and which goes first changes with each
        // claim, so that claims of one row are fair too.
        self.state.turn = (self.state.turn + 1) % Shape::ALL.len();
        let mut turns: Vec<Turn> = Shape::ALL.map(|shape| self.turn(shape)).into();
        turns.rotate_left(self.state.turn);
        while self.taken.len() < self.rows {
            let Some(at) = (0..turns.len()).min_by_key(|&at| turns[at].taken) else {
                break;
            };
            let before = self.taken.len();
            if self.take(&mut turns[at]) {
                turns[at].taken += self.taken.len() - before;
            } else {
                let done = turns.remove(at);
                self.remember(&done);
            }
            if self.bytes == 0 {
                break;
            }
        }
        for turn in &turns {
            self.remember(turn);
        }
    }

    /// The destinations that have rows of this shape, from where the last claim stopped. Each has
    /// a row to give, so as many as rows are asked for will do; with a filter of types, all.
    fn turn(&self, shape: Shape) -> Turn {
        let active = &self.state.active[shape.index()];
        let cursor = self.state.cursor[shape.index()];
        let ids = |names: &[String]| -> HashSet<usize> {
            let ids = names
                .iter()
                .map(|name| self.state.dest_index.get(name.as_str()));
            ids.flatten().copied().collect()
        };
        let in_turn = || {
            active
                .range(cursor..)
                .chain(active.range(..cursor))
                .copied()
        };
        let most = match self.request.event_types {
            Some(_) => usize::MAX,
            None => self.rows,
        };
        let dests: Vec<usize> = match &self.request.destinations {
            DestinationFilter::All => in_turn().take(most).collect(),
            DestinationFilter::Except(names) => {
                let left_out = ids(names);
                let admitted = in_turn().filter(|dest| !left_out.contains(dest));
                admitted.take(most).collect()
            }
            DestinationFilter::Only(names) => {
                let admitted = ids(names).into_iter();
                let mut dests: Vec<usize> = admitted.filter(|dest| active.contains(dest)).collect();
                dests.sort_unstable_by_key(|&dest| (dest < cursor, dest));
                dests
            }
        };
        Turn {
            shape,
            dests: dests.into_iter().map(|dest| (dest, None)).collect(),
            runs: VecDeque::new(),
            taken: 0,
        }
    }

    /// The next claim starts with the destination whose turn it would have been.
    fn remember(&mut self, turn: &Turn) {
        if turn.taken > 0
            && let Some(&(dest, _)) = turn.dests.front()
        {
            self.state.cursor[turn.shape.index()] = dest;
        }
    }

    /// Takes one row, or one part of a run. False where the shape has no more.
    fn take(&mut self, turn: &mut Turn) -> bool {
        while let Some((dest, from)) = turn.dests.pop_front() {
            let Some(entry) = self.find(dest, turn.shape, from) else {
                continue;
            };
            turn.dests.push_back((dest, Some(entry)));
            if turn.shape == Shape::Keyed {
                self.take_run(turn, entry.1, i64::MIN);
            } else {
                self.take_row(entry.1);
            }
            return true;
        }
        let Some((lane, last)) = turn.runs.pop_front() else {
            return false;
        };
        self.take_run(turn, lane, last);
        true
    }

    /// The first entry after `from` whose (first) row is of an asked type.
    fn find(
        &self,
        dest: usize,
        shape: Shape,
        from: Option<(Micros, i64)>,
    ) -> Option<(Micros, i64)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let queue = &self.state.dests[dest].queues[shape.index()];
        let start = from.map_or(Unbounded, Excluded);
        queue.range((start, Unbounded)).copied().find(|&(_, id)| {
            let row = match shape {
                Shape::Keyed => self
                    .state
                    .lanes
                    .get(&id)
                    .and_then(|lane| lane.rows.first().copied()),
                Shape::Fresh | Shape::Due => Some(id),
            };
            row.is_some_and(|seq| self.is_asked_for(seq))
        })
    }

    fn is_asked_for(&self, seq: i64) -> bool {
        let Some(types) = &self.request.event_types else {
            return true;
        };
        let row = self.state.rows.get(&seq);
        row.is_some_and(|row| types.contains(&row.event.event_type))
    }

    fn take_run(&mut self, turn: &mut Turn, lane: i64, after: i64) {
        let mut last = after;
        for _ in 0..RUN {
            if self.taken.len() >= self.rows {
                return;
            }
            let next = self.state.lanes.get(&lane).and_then(|lane| {
                let from = (std::ops::Bound::Excluded(last), std::ops::Bound::Unbounded);
                lane.rows.range(from).next().copied()
            });
            let Some(seq) = next else { return };
            let row = self.state.rows.get(&seq);
            let queued = row.is_some_and(|row| row.place == Place::Queued);
            if !queued || !self.is_asked_for(seq) || !self.take_row(seq) {
                return;
            }
            last = seq;
        }
        turn.runs.push_back((lane, last));
    }

    /// Takes a row where the bytes allow; where not, the claim is full.
    fn take_row(&mut self, seq: i64) -> bool {
        let now = self.state.now;
        let Some(row) = self.state.rows.get_mut(&seq) else {
            return false;
        };
        let size = u64::try_from(row.event.payload.len()).unwrap_or(u64::MAX);
        if size > self.bytes && !self.taken.is_empty() {
            self.bytes = 0;
            return false;
        }
        self.bytes = self.bytes.saturating_sub(size);
        let event = Arc::make_mut(&mut row.event);
        event.attempts = event.attempts.saturating_add(1);
        let at = from_micros(now);
        let policy = self.state.dests[row.dest].policy;
        self.taken.push(Claimed {
            lease: Lease::new(seq, self.request.token),
            expired: event.expires_at.is_some_and(|end| end <= at),
            age: at.duration_since(event.created_at).unwrap_or_default(),
            death_blocks: policy == DeadHeadPolicy::Block && event.key.is_some(),
            event: Arc::clone(&row.event),
        });
        self.state.lease(seq, self.request.token, self.until);
        true
    }
}
