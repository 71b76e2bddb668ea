//! The statements of a claim, and what each brings.

use std::time::{Duration, SystemTime};

use super::front::FrontNote;
use super::{EventRow, Notes, micros};
use crate::{ClaimRequest, Claimed, DestinationFilter, Lease, LeaseToken, Undecodable};

/// One statement of a claim.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "every adapter must make each")]
pub enum Step {
    /// Fresh rows from `seq` on, without a filter.
    Fresh {
        /// The most rows.
        rows: i64,
        /// The first `seq`.
        seq: i64,
        /// Whether it also learns which shapes have rows.
        notes: bool,
    },
    /// Fresh rows from `seq` on, by a window, with filters; parks rows.
    FreshWindow {
        /// How many rows it looks at.
        window: i64,
        /// The most rows.
        rows: i64,
        /// The first `seq`.
        seq: i64,
    },
    /// Due rows, by a window, with filters; parks rows.
    DueWindow {
        /// How many rows it looks at.
        window: i64,
        /// The most rows.
        rows: i64,
    },
    /// Parked rows of free destinations after this one.
    Parked {
        /// The most rows.
        rows: i64,
        /// The destination.
        after: String,
    },
    /// Keyed rows at the front of stripes.
    Front {
        /// The most rows.
        rows: usize,
        /// The stripes, the first one first.
        stripes: Vec<i64>,
        /// Whether it asks all of them at once.
        together: bool,
        /// Whether it looks before it locks: after a claim that found nothing.
        careful: bool,
    },
    /// Runs of keys after this one.
    Keyed {
        /// The most rows.
        rows: usize,
        /// The destination and the key's hash.
        after: (String, i64),
        /// The first and the last stripe of the keys.
        stripes: (i64, i64),
        /// Whether it looks before it locks: after a claim that found nothing.
        careful: bool,
    },
}

/// The filters of a request as parameters: event types, only these destinations, not these.
#[must_use]
pub fn filters(request: &ClaimRequest) -> [Option<&[String]>; 3] {
    let (only, except) = match &request.destinations {
        DestinationFilter::Only(list) => (Some(list.as_slice()), None),
        DestinationFilter::Except(list) => (None, Some(list.as_slice())),
        DestinationFilter::All => (None, None),
    };
    [request.event_types.as_deref(), only, except]
}

impl Step {
    const fn is_keyed(&self) -> bool {
        matches!(self, Self::Keyed { .. } | Self::Front { .. })
    }
}

/// What one statement brought.
#[derive(Debug, Default)]
pub struct Taken {
    pub(super) events: Vec<Claimed>,
    pub(super) undecodable: Vec<Undecodable>,
    pub(super) bytes: u64,
    pub(super) last: Option<i64>,
    pub(super) notes: Option<Notes>,
    pub(super) seen: Option<Seen>,
    pub(super) next_key: Option<(String, i64)>,
    pub(super) front: FrontNote,
    /// The destination at which a walk through parked ones stopped.
    pub(super) next_parked: Option<String>,
    pub(super) unfinished: bool,
    /// Other claims kept this one off keys.
    pub(super) refused: bool,
}

/// What a statement with a window looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) last: i64,
    pub(super) rows: usize,
    pub(super) free: usize,
    pub(super) parked: usize,
}

impl Taken {
    /// Room for `rows` rows.
    #[must_use]
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            events: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    /// Adds a row. `lease_until` is the column of this name; a row without it is a note. `extra` is
    /// the last column.
    pub fn row(
        &mut self,
        request: &ClaimRequest,
        step: &Step,
        row: EventRow,
        lease_until: Option<SystemTime>,
        extra: i64,
    ) {
        let Some(lease_until) = lease_until else {
            self.note(step, row, extra);
            return;
        };
        if matches!(step, Step::Fresh { notes: true, .. }) && self.notes.is_none() {
            self.notes = Some(Notes::new(extra));
        }
        let (seq, size) = (row.seq, row.payload.len());
        let lease = Duration::from_micros(micros(request.lease).unsigned_abs());
        let now = lease_until.checked_sub(lease).unwrap_or(lease_until);
        self.bytes += u64::try_from(size).unwrap_or(0);
        self.last = self.last.max(Some(seq));
        match row.claimed(request.token, now, extra == 1 && step.is_keyed()) {
            Ok(claimed) => self.events.push(claimed),
            Err(problem) => self.unreadable(request.token, seq, problem),
        }
    }

    /// Adds a row that can't be read.
    pub fn unreadable(&mut self, token: LeaseToken, seq: i64, problem: impl Into<String>) {
        let lease = Lease::new(seq, token);
        self.undecodable.push(Undecodable::new(lease, problem));
        self.last = self.last.max(Some(seq));
    }

    fn note(&mut self, step: &Step, row: EventRow, extra: i64) {
        let count = |value: i32| usize::try_from(value).unwrap_or(0);
        if matches!(step, Step::Parked { .. }) {
            self.next_parked = Some(row.destination);
        } else if matches!(step, Step::Front { .. }) {
            self.front = FrontNote::new(row.seq);
            self.refused = row.attempts & 2 > 0;
        } else if step.is_keyed() {
            self.next_key = Some((row.destination, row.seq));
            self.unfinished = row.attempts & 1 > 0;
            self.refused = row.attempts & 2 > 0;
        } else {
            self.notes = Some(Notes::new(extra));
            self.seen = Some(Seen {
                last: row.seq,
                rows: row.max_attempts.map_or(0, count),
                free: count(row.replays),
                parked: count(row.attempts),
            });
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.events.len() + self.undecodable.len()
    }
}
