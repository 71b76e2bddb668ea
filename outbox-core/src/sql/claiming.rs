//! A claim as a few statements: which, in what order, for how many rows.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::front::{Brought, Look, Turn};
use super::taken::Seen;
use super::walk::Stripes;
use super::{Notes, Scan, ScanState, Shape, Shapes, Shares, Start, Step, Taken};
use crate::{Claim, ClaimRequest, DestinationFilter, Error};

/// The most rows of one statement.
const MOST: usize = 10_000;
/// How long a claim walks through rows of held destinations before it answers.
const WALK: Duration = Duration::from_millis(20);
/// How long a claim that finds no run goes on looking at keys that wait or are in flight.
const KEYED_WALK: Duration = Duration::from_millis(200);

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
        asked: Shapes::default(),
        begun: clock(),
        given_out: lock(state).mark.given_out(),
        stale: false,
        learned: false,
        more: false,
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
    /// The shapes that were asked for rows.
    asked: Shapes,
    begun: Instant,
    /// The last number given out, as it was known when the claim began.
    given_out: Option<i64>,
    /// Whether the knowledge of shapes was old when the claim began.
    stale: bool,
    /// Whether a statement brought notes.
    learned: bool,
    /// Whether the last window was filled: more rows follow.
    more: bool,
    /// Whether a claim that follows at once would find more.
    unfinished: bool,
}

impl<D: ClaimDriver> Run<'_, D> {
    async fn all(&mut self) -> Result<(), Error> {
        let rows = usize::try_from(self.request.rows.get()).unwrap_or(usize::MAX);
        let shares = {
            let mut state = lock(self.state);
            state.leaves_out(match &self.request.destinations {
                DestinationFilter::Except(list) => list,
                _ => &[],
            });
            let now = (self.clock)();
            self.stale = state.is_stale(now);
            state.shares(rows, now)
        };
        self.share_out(shares).await?;
        if self.taken() == 0 && !self.asked.contains(Shape::Fresh) {
            let fresh = Shapes::default().with(Shape::Fresh, true);
            self.share_out(Shares::new(rows, fresh, 0)).await?;
        }
        if self.needs_look(rows) {
            self.look().await?;
        }
        if self.taken() == 0 {
            // Those that rested, and those that were learnt of just now.
            let shares = lock(self.state).others(rows, self.asked);
            self.share_out(shares).await?;
        }
        if self.unfinished && self.taken() == 0 {
            self.claim.next_due = Some(Duration::ZERO);
        }
        lock(self.state).ended(self.taken(), rows);
        Ok(())
    }

    /// Whether what the statements brought along does not suffice.
    fn needs_look(&self, rows: usize) -> bool {
        let state = lock(self.state);
        if self.taken() == 0 && !self.unfinished && state.mark.matters() {
            return true;
        }
        let short = self.taken() < rows && !state.mark.was_full();
        !self.learned && (short || self.stale)
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
            let share = share.min(MOST);
            self.asked = self.asked.with(shape, true);
            self.more = false;
            let taken = match shape {
                Shape::Fresh => self.fresh(share).await?,
                Shape::Due => self.due(share).await?,
                Shape::Parked => self.parked(share).await?,
                Shape::Keyed => self.keyed(share).await?,
            };
            let more = self.more || taken >= share;
            let now = (self.clock)();
            lock(self.state).gave(shape, taken, now, now.saturating_duration_since(begun));
            shares.took(shape, taken, more);
        }
        Ok(())
    }

    async fn fresh(&mut self, rows: usize) -> Result<usize, Error> {
        let now = (self.clock)();
        let start = lock(self.state).start(now);
        let taken = self.fresh_from(rows, start).await?;
        if taken > 0 || start.sweep {
            return Ok(taken);
        }
        let sweep = {
            let state = lock(self.state);
            state.mark.may_sweep(now).then(|| state.mark.sweep())
        };
        match sweep {
            Some(start) => self.fresh_from(rows, start).await,
            None => Ok(0),
        }
    }

    async fn fresh_from(&mut self, rows: usize, start: Start) -> Result<usize, Error> {
        let chosen = self.request.event_types.is_some()
            || matches!(self.request.destinations, DestinationFilter::Only(_));
        if chosen || lock(self.state).wants_window(start.sweep) {
            return self.fresh_windows(rows, start).await;
        }
        let begun = (self.clock)();
        let step = Step::Fresh {
            rows: column(rows),
            seq: start.seq,
            notes: self.stale || !lock(self.state).mark.was_full(),
        };
        let first = self.taken() == 0;
        let taken = self.take(&step).await?;
        let now = (self.clock)();
        let short = taken.rows() < rows;
        let scan = Scan {
            last: taken.last,
            rows: taken.rows(),
            full: !short || taken.rows() > 0 && self.may_be_cut(&taken),
            left: short && (taken.rows() > 0 || !first),
            took: now.saturating_duration_since(begun),
        };
        lock(self.state).mark.claimed(start, scan, now);
        Ok(self.keep(taken))
    }

    async fn fresh_windows(&mut self, rows: usize, start: Start) -> Result<usize, Error> {
        let begun = (self.clock)();
        let mut from = start;
        loop {
            let before = (self.clock)();
            let step = |window| Step::FreshWindow {
                window,
                rows: column(rows),
                seq: from.seq,
            };
            let (taken, seen) = self.look_through(Shape::Fresh, rows, step).await?;
            lock(self.state).parked(from.sweep, seen.parked, seen.rows);
            let now = (self.clock)();
            let cut = taken.rows() < seen.free;
            let end = (seen.rows > 0).then_some(seen.last);
            let scan = Scan {
                last: if cut { taken.last } else { end },
                rows: taken.rows(),
                full: cut || self.more,
                left: cut,
                took: now.saturating_duration_since(before),
            };
            lock(self.state).mark.claimed(from, scan, now);
            let got = self.keep(taken);
            if got > 0 || cut || !self.more {
                return Ok(got);
            }
            if now.saturating_duration_since(begun) > WALK {
                self.unfinished = true;
                return Ok(0);
            }
            from.seq = end.map_or(i64::MAX, |seq| seq.saturating_add(1));
        }
    }

    async fn due(&mut self, rows: usize) -> Result<usize, Error> {
        let begun = (self.clock)();
        loop {
            let step = |window| Step::DueWindow {
                window,
                rows: column(rows),
            };
            let (taken, seen) = self.look_through(Shape::Due, rows, step).await?;
            let got = self.keep(taken);
            if got > 0 || seen.parked == 0 {
                return Ok(got);
            }
            if (self.clock)().saturating_duration_since(begun) > WALK {
                self.unfinished = true;
                return Ok(0);
            }
        }
    }

    /// Makes a statement with a window, and learns from it how wide the next should be.
    async fn look_through(
        &mut self,
        shape: Shape,
        rows: usize,
        step: impl FnOnce(i64) -> Step,
    ) -> Result<(Taken, Seen), Error> {
        let window = lock(self.state).window(shape).rows(rows);
        let mut taken = self.take(&step(column(window))).await?;
        let seen = taken.seen.unwrap_or_default();
        if let Some(notes) = &mut taken.notes {
            notes.parked(seen.parked);
        }
        self.more = seen.rows >= window;
        lock(self.state)
            .window(shape)
            .looked(rows, self.more, seen.free);
        Ok((taken, seen))
    }

    async fn parked(&mut self, rows: usize) -> Result<usize, Error> {
        let begun = (self.clock)();
        let mut after = std::mem::take(&mut lock(self.state).parked_after);
        let mut rounds = u8::from(after.is_empty());
        loop {
            let step = Step::Parked {
                rows: column(rows),
                after,
            };
            let mut taken = self.take(&step).await?;
            let last = taken
                .events
                .iter()
                .map(|claimed| &claimed.event.destination);
            let walked = taken.next_parked.take();
            let next = last.max().cloned().or(walked).unwrap_or_default();
            let got = self.keep(taken);
            rounds += u8::from(next.is_empty());
            let late = (self.clock)().saturating_duration_since(begun) > WALK;
            if got > 0 || rounds > 1 || late {
                self.unfinished |= got == 0 && rounds <= 1;
                lock(self.state).parked_after = next;
                return Ok(got);
            }
            after = next;
        }
    }

    async fn keyed(&mut self, rows: usize) -> Result<usize, Error> {
        let (careful, mut turns) = {
            let mut state = lock(self.state);
            let careful = std::mem::replace(&mut state.keyed_careful, true);
            (careful, state.fronts.turns((self.clock)()))
        };
        let mut got = 0;
        while 2 * got < rows
            && let Some(turn) = turns.pop_front()
        {
            let left = rows - got;
            got += match turn {
                Turn::Front { stripes, together } => {
                    let (got, next) = self.front(left, stripes, together, careful).await?;
                    turns.extend(next);
                    got
                }
                Turn::Walk(stripes) => {
                    let walked = self.walk(left, stripes, careful).await?;
                    if walked > 0 {
                        // Of each claim is known where one walk began.
                        turns.clear();
                    }
                    walked
                }
            };
        }
        if got > 0 {
            let mut state = lock(self.state);
            (state.keyed_first, state.keyed_careful) = (false, false);
        }
        Ok(got)
    }

    /// Claims at the fronts of stripes. Also returns what is to be done where they gave little.
    async fn front(
        &mut self,
        rows: usize,
        stripes: Vec<i64>,
        together: bool,
        careful: bool,
    ) -> Result<(usize, Vec<Turn>), Error> {
        let begun = (self.clock)();
        let step = Step::Front {
            rows,
            stripes,
            together,
            careful,
        };
        let taken = self.take(&step).await?;
        let now = (self.clock)();
        self.looked_at_keys(&taken);
        if let Step::Front { stripes, .. } = step {
            let mut state = lock(self.state);
            let look = Look {
                note: taken.front,
                together,
                full: taken.rows() >= rows,
                crowded: self.is_crowded(&taken),
                took: now.saturating_duration_since(begun),
            };
            state.fronts.looked(&stripes, look, &taken.events, now);
        }
        let next = taken.front.next(together);
        Ok((self.keep(taken), next))
    }

    /// Claims by a walk through keys.
    async fn walk(&mut self, rows: usize, stripes: Stripes, careful: bool) -> Result<usize, Error> {
        let begun = (self.clock)();
        let mut careful = careful;
        let mut after = {
            let mut state = lock(self.state);
            let after = state.walk(stripes).after.clone();
            state.walks(self.request.token, &after);
            after
        };
        loop {
            let step = Step::Keyed {
                rows,
                after,
                stripes: (stripes.0, stripes.1),
                careful,
            };
            let mut taken = self.take(&step).await?;
            let now = (self.clock)();
            let mut unfinished = taken.unfinished;
            self.looked_at_keys(&taken);
            {
                let mut state = lock(self.state);
                careful = state.keyed_careful;
                let walk = state.walk(stripes);
                if let Some(next) = taken.next_key.take() {
                    if taken.rows() > 0 || !unfinished {
                        walk.found(next);
                    } else if walk.found_none(next) {
                        unfinished = false;
                    }
                }
                after = walk.after.clone();
                let full = taken.rows() >= rows;
                let brought = Brought::new(&taken.events, full, taken.unfinished);
                state.fronts.walked(stripes, brought, now);
            }
            let got = self.keep(taken);
            let late = now.saturating_duration_since(begun) > KEYED_WALK;
            if got > 0 || !unfinished || late {
                self.unfinished |= unfinished;
                return Ok(got);
            }
        }
    }

    /// Notes what a look at keyed rows means for the next one.
    fn looked_at_keys(&mut self, taken: &Taken) {
        // Not worth another look at once: what others have guarded, they claim.
        self.unfinished |= taken.refused;
        let crowded = self.is_crowded(taken);
        let mut state = lock(self.state);
        state.keyed_first = crowded;
        state.keyed_careful &= taken.rows() == 0 && !crowded;
    }

    /// Whether a statement's rows may have found no room beside those of others.
    fn is_crowded(&self, taken: &Taken) -> bool {
        taken.rows() == 0 && self.bytes < self.request.bytes
    }

    /// Whether the limit of bytes may have ended a statement: no more than half of it is left.
    const fn may_be_cut(&self, taken: &Taken) -> bool {
        let left = self.bytes.saturating_sub(taken.bytes);
        left <= self.request.bytes / 2
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
        if self.taken() == 0
            && !self.unfinished
            && state.mark.matters()
            && let Some(before) = self.given_out
        {
            state.mark.nothing_up_to(before, self.begun);
        }
        state.mark.gave_out(last);
        Ok(())
    }

    fn learn(&mut self, notes: Notes) {
        self.learned = true;
        self.claim.next_due = notes.next_due;
        lock(self.state).learned(notes.shapes, notes.held, (self.clock)());
    }
}

fn column(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
