//! A claim as a few statements: which, in what order, for how many rows.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use super::{EventRow, LADDER, Notes, Scan, ScanState, Shape, Shares, Start, micros, rung, window};
use crate::{
    Claim, ClaimRequest, Claimed, DestinationFilter, Error, Lease, LeaseToken, Undecodable,
};

/// How long a claim walks through rows of held destinations before it answers.
const WALK: Duration = Duration::from_millis(20);

/// One statement of a claim.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "every adapter must make each")]
pub enum Step {
    /// Fresh rows from `seq` on, without a filter.
    Fresh {
        /// The place of the limit in [`LADDER`].
        rung: usize,
        /// The first `seq`.
        seq: i64,
    },
    /// Fresh rows from `seq` on, by a window, with filters; parks rows.
    FreshWindow {
        /// The place of the limit in [`LADDER`].
        rung: usize,
        /// The first `seq`.
        seq: i64,
    },
    /// Due rows, by a window, with filters; parks rows.
    DueWindow {
        /// The place of the limit in [`LADDER`].
        rung: usize,
    },
    /// Parked rows of free destinations after this one.
    Parked {
        /// The place of the limit in [`LADDER`].
        rung: usize,
        /// The destination.
        after: String,
    },
    /// Runs of keys after this one.
    Keyed {
        /// The most rows.
        rows: usize,
        /// The destination and the key's hash.
        after: (String, i64),
    },
}

/// What runs the statements of a claim: an adapter with its connection.
#[async_trait]
pub trait ClaimDriver: Send {
    /// Makes one statement. `bytes` is what is left of the limit, `first` whether the first row comes
    /// whatever its size.
    async fn take(
        &mut self,
        request: &ClaimRequest,
        step: &Step,
        bytes: i64,
        first: bool,
    ) -> Result<Taken, Error>;

    /// Learns which shapes have rows; and the last `seq` that was given out.
    async fn look(&mut self) -> Result<(Notes, i64), Error>;
}

/// What one statement brought.
#[derive(Debug, Default)]
pub struct Taken {
    events: Vec<Claimed>,
    undecodable: Vec<Undecodable>,
    bytes: u64,
    last: Option<i64>,
    notes: Option<Notes>,
    seen: Option<Seen>,
    next_key: Option<(String, i64)>,
}

/// What a statement with a window looked at.
#[derive(Debug, Clone, Copy)]
struct Seen {
    last: i64,
    rows: usize,
    free: usize,
    parked: usize,
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
        if matches!(step, Step::Fresh { .. }) && self.notes.is_none() {
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
        if step.is_keyed() {
            self.next_key = Some((row.destination, row.seq));
        } else {
            self.seen = Some(Seen {
                last: row.seq,
                rows: usize::try_from(extra).unwrap_or(0),
                free: count(row.replays),
                parked: count(row.attempts),
            });
        }
    }

    fn rows(&self) -> usize {
        self.events.len() + self.undecodable.len()
    }
}

impl Step {
    const fn is_keyed(&self) -> bool {
        matches!(self, Self::Keyed { .. })
    }
}

/// Makes a claim.
///
/// Rows that came before a statement failed are handed out: they are leased. The error will show
/// again.
///
/// # Errors
///
/// Those of the driver, where nothing came.
pub async fn claim<D: ClaimDriver>(
    driver: &mut D,
    state: &Mutex<ScanState>,
    request: &ClaimRequest,
    clock: fn() -> Instant,
) -> Result<Claim, Error> {
    let mut run = Run {
        driver,
        state,
        request,
        clock,
        claim: Claim::default(),
        bytes: request.bytes,
        learned: false,
        unfinished: false,
    };
    let outcome = run.all().await;
    let mut claim = run.claim;
    if let Err(error) = outcome {
        lock(state).reset();
        if claim.events.is_empty() && claim.undecodable.is_empty() {
            return Err(error);
        }
        tracing::warn!(error = ?error, "a part of a claim failed; the rest is handed out");
    }
    claim
        .events
        .sort_unstable_by_key(|claimed| claimed.lease.seq);
    Ok(claim)
}

fn lock(state: &Mutex<ScanState>) -> MutexGuard<'_, ScanState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Run<'a, D> {
    driver: &'a mut D,
    state: &'a Mutex<ScanState>,
    request: &'a ClaimRequest,
    clock: fn() -> Instant,
    claim: Claim,
    bytes: u64,
    /// Whether a statement brought notes.
    learned: bool,
    /// Whether more windows wait to be looked through.
    unfinished: bool,
}

impl<D: ClaimDriver> Run<'_, D> {
    async fn all(&mut self) -> Result<(), Error> {
        let rows = usize::try_from(self.request.rows.get()).unwrap_or(usize::MAX);
        let shares = lock(self.state).shares(rows, (self.clock)());
        self.share_out(shares).await?;
        if self.taken() == 0 {
            let shares = lock(self.state).rested(rows, (self.clock)());
            self.share_out(shares).await?;
        }
        let stale = lock(self.state).is_stale((self.clock)());
        if !self.learned && (stale || self.taken() < rows) {
            self.look().await?;
        }
        if self.unfinished && self.taken() == 0 {
            self.claim.next_due = Some(Duration::ZERO);
        }
        Ok(())
    }

    fn taken(&self) -> usize {
        self.claim.events.len() + self.claim.undecodable.len()
    }

    async fn share_out(&mut self, mut shares: Shares) -> Result<(), Error> {
        while let Some((shape, share)) = shares.next() {
            if self.bytes == 0 && self.taken() > 0 {
                break;
            }
            let begun = (self.clock)();
            let place = rung(share);
            let (asked, taken) = match shape {
                Shape::Fresh => (limit(place), self.fresh(place).await?),
                Shape::Due => (limit(place), self.due(place).await?),
                Shape::Parked => (limit(place), self.parked(place).await?),
                Shape::Keyed => (share, self.keyed(share).await?),
            };
            let now = (self.clock)();
            lock(self.state).gave(shape, taken, now, now.saturating_duration_since(begun));
            shares.took(shape, asked, taken);
        }
        Ok(())
    }

    async fn fresh(&mut self, place: usize) -> Result<usize, Error> {
        let now = (self.clock)();
        let start = lock(self.state).mark.start(now);
        let taken = self.fresh_from(place, start).await?;
        if taken > 0 || start.sweep {
            return Ok(taken);
        }
        let sweep = {
            let state = lock(self.state);
            state.mark.may_sweep(now).then(|| state.mark.sweep())
        };
        match sweep {
            Some(start) => self.fresh_from(place, start).await,
            None => Ok(0),
        }
    }

    async fn fresh_from(&mut self, place: usize, start: Start) -> Result<usize, Error> {
        let filtered = self.request.event_types.is_some()
            || self.request.destinations != DestinationFilter::All;
        if filtered || lock(self.state).held {
            return self.fresh_windows(place, start).await;
        }
        let begun = (self.clock)();
        let step = Step::Fresh {
            rung: place,
            seq: start.seq,
        };
        let taken = self.take(&step).await?;
        let now = (self.clock)();
        let scan = Scan {
            last: taken.last,
            rows: taken.rows(),
            full: taken.rows() >= limit(place),
            took: now.saturating_duration_since(begun),
        };
        lock(self.state).mark.claimed(start, scan, now);
        Ok(self.keep(taken))
    }

    async fn fresh_windows(&mut self, place: usize, start: Start) -> Result<usize, Error> {
        let begun = (self.clock)();
        let mut from = start;
        loop {
            let before = (self.clock)();
            let step = Step::FreshWindow {
                rung: place,
                seq: from.seq,
            };
            let taken = self.take(&step).await?;
            let now = (self.clock)();
            let more = taken.seen.is_some_and(|seen| seen.rows >= window_of(place));
            let cut = taken
                .seen
                .is_some_and(|seen| taken.rows() > 0 && taken.rows() < seen.free);
            let end = taken
                .seen
                .filter(|seen| seen.rows > 0)
                .map(|seen| seen.last);
            let scan = Scan {
                last: if cut { taken.last } else { end },
                rows: taken.rows(),
                full: cut || more,
                took: now.saturating_duration_since(before),
            };
            lock(self.state).mark.claimed(from, scan, now);
            let rows = self.keep(taken);
            if rows > 0 || !more {
                return Ok(rows);
            }
            if now.saturating_duration_since(begun) > WALK {
                self.unfinished = true;
                return Ok(0);
            }
            from.seq = end.map_or(i64::MAX, |seq| seq.saturating_add(1));
        }
    }

    async fn due(&mut self, place: usize) -> Result<usize, Error> {
        let begun = (self.clock)();
        loop {
            let taken = self.take(&Step::DueWindow { rung: place }).await?;
            let parked = taken.seen.is_some_and(|seen| seen.parked > 0);
            let rows = self.keep(taken);
            if rows > 0 || !parked {
                return Ok(rows);
            }
            if (self.clock)().saturating_duration_since(begun) > WALK {
                self.unfinished = true;
                return Ok(0);
            }
        }
    }

    async fn parked(&mut self, place: usize) -> Result<usize, Error> {
        let mut after = std::mem::take(&mut lock(self.state).parked_after);
        let mut rows = 0;
        loop {
            let again = !after.is_empty();
            let step = Step::Parked {
                rung: place,
                after: std::mem::take(&mut after),
            };
            let taken = self.take(&step).await?;
            let last = taken
                .events
                .iter()
                .map(|claimed| &claimed.event.destination);
            if let Some(last) = last.max() {
                lock(self.state).parked_after.clone_from(last);
            }
            rows += self.keep(taken);
            if rows > 0 || !again {
                return Ok(rows);
            }
        }
    }

    async fn keyed(&mut self, rows: usize) -> Result<usize, Error> {
        let after = lock(self.state).keyed_after.clone();
        let mut taken = self.take(&Step::Keyed { rows, after }).await?;
        if let Some(next) = taken.next_key.take() {
            lock(self.state).keyed_after = next;
        }
        Ok(self.keep(taken))
    }

    async fn take(&mut self, step: &Step) -> Result<Taken, Error> {
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        let first = self.taken() == 0;
        self.driver.take(self.request, step, bytes, first).await
    }

    fn keep(&mut self, taken: Taken) -> usize {
        let rows = taken.rows();
        self.bytes = self.bytes.saturating_sub(taken.bytes);
        if self.claim.events.is_empty() {
            self.claim.events = taken.events;
        } else {
            self.claim.events.extend(taken.events);
        }
        self.claim.undecodable.extend(taken.undecodable);
        if let Some(notes) = taken.notes {
            self.learn(notes);
        }
        rows
    }

    async fn look(&mut self) -> Result<(), Error> {
        let (notes, last) = self.driver.look().await?;
        self.learn(notes);
        let mut state = lock(self.state);
        if self.taken() == 0 && !self.unfinished && state.mark.matters() {
            state.mark.nothing_up_to(last);
        }
        Ok(())
    }

    fn learn(&mut self, notes: Notes) {
        self.learned = true;
        self.claim.next_due = notes.next_due;
        lock(self.state).learned(notes.shapes, notes.held, (self.clock)());
    }
}

fn limit(place: usize) -> usize {
    usize::try_from(LADDER[place]).unwrap_or(usize::MAX)
}

fn window_of(place: usize) -> usize {
    usize::try_from(window(LADDER[place])).unwrap_or(usize::MAX)
}
