//! A claim: each shape in its turn, then one statement that takes what was locked.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::claim::{PARKED, WINDOW};
use super::names_text;
use super::{Cell, Row, Session, Statements, Value};
use crate::clock::from_micros;
use crate::sql::session::{Letter, only};
use crate::sql::{Shape, Shapes, Shares, Sql, json, micros};
use crate::{Claim, ClaimRequest, DestinationFilter, Error, Lease, Undecodable};

/// How many windows of one shape a claim parks.
const PARKING_PASSES: usize = 5;

/// A row's entry of the queue: shape, place, `seq`.
pub(super) type Entry = [i64; 3];

/// What a store remembers from one claim to the next: whose turn it is.
#[derive(Debug)]
pub struct ClaimState(Mutex<Turns>);

#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    pub(super) shape: usize,
    pub(super) parked: i64,
    pub(super) lane: i64,
    pub(super) expired_lane: i64,
}

impl Default for ClaimState {
    fn default() -> Self {
        Self(Mutex::new(Turns {
            shape: 0,
            parked: -1,
            lane: -1,
            expired_lane: -1,
        }))
    }
}

impl ClaimState {
    pub(super) fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a claim, in the transaction that was begun for it.
///
/// # Errors
///
/// Those of the session; nothing is claimed where the transaction is not committed.
pub async fn claim<S: Session>(
    session: &mut S,
    sql: &Statements,
    state: &ClaimState,
    request: &ClaimRequest,
) -> Result<Claim, Error> {
    let look = session
        .fetch(&sql.claim.look, &[], &[Cell::Int; 7])
        .await
        .and_then(only)?;
    let mut run = Claiming::new(session, sql, state, request, look.int(0));
    let (row_due, hold_ends) = (look.maybe(5), look.maybe(6));
    run.next_due = row_due.into_iter().chain(hold_ends).min();
    if look.is(4) {
        run.leave_out_held().await?;
    }
    let shapes = Shapes::default()
        .with(Shape::Fresh, true)
        .with(Shape::Due, look.is(1))
        .with(Shape::Keyed, look.is(2))
        .with(Shape::Parked, look.is(3));
    run.share_out(shapes).await?;
    run.take().await
}

pub(super) struct Claiming<'a, S> {
    pub(super) session: &'a mut S,
    pub(super) sql: &'a Statements,
    pub(super) state: &'a ClaimState,
    pub(super) now: i64,
    pub(super) next_due: Option<i64>,
    request: &'a ClaimRequest,
    pub(super) filter: Filter,
    seqs: Vec<i64>,
    bytes: u64,
    full: bool,
}

/// The request's filters as statements bind them.
pub(super) struct Filter {
    closed: Vec<String>,
    closed_text: String,
    types: Option<String>,
    only: Option<String>,
}

impl Filter {
    fn new(request: &ClaimRequest) -> Self {
        let (only, closed) = match &request.destinations {
            DestinationFilter::Only(names) => (Some(names_text(names)), Vec::new()),
            DestinationFilter::Except(names) => (None, names.clone()),
            DestinationFilter::All => (None, Vec::new()),
        };
        Self {
            closed_text: names_text(&closed),
            closed,
            types: request.event_types.as_deref().map(names_text),
            only,
        }
    }

    pub(super) fn values(&self) -> [Value<'_>; 5] {
        let types = Value::text(self.types.as_deref());
        let only = Value::text(self.only.as_deref());
        [Value::Text(&self.closed_text), types, types, only, only]
    }
}

impl<'a, S: Session> Claiming<'a, S> {
    fn new(
        session: &'a mut S,
        sql: &'a Statements,
        state: &'a ClaimState,
        request: &'a ClaimRequest,
        now: i64,
    ) -> Self {
        Self {
            session,
            sql,
            state,
            now,
            next_due: None,
            request,
            filter: Filter::new(request),
            seqs: Vec::new(),
            bytes: request.bytes,
            full: false,
        }
    }

    async fn leave_out_held(&mut self) -> Result<(), Error> {
        let (held, now) = (&self.sql.claim.held, [Value::Int(self.now)]);
        let rows = self.session.fetch(held, &now, &[Cell::Bytes]).await?;
        self.filter
            .closed
            .extend(rows.iter().filter_map(|row| row.text(0)));
        self.filter.closed_text = names_text(&self.filter.closed);
        Ok(())
    }

    async fn share_out(&mut self, shapes: Shapes) -> Result<(), Error> {
        let rows = usize::try_from(self.request.rows.get()).unwrap_or(usize::MAX);
        let turn = {
            let mut turns = self.state.turns();
            turns.shape = turns.shape.wrapping_add(1);
            turns.shape
        };
        let mut shares = Shares::new(rows, shapes, turn);
        while let Some((shape, share)) = shares.next() {
            if self.full {
                break;
            }
            let before = self.seqs.len();
            match shape {
                Shape::Fresh => self.queue(0, 0, share).await?,
                Shape::Due => self.queue(1, self.now, share).await?,
                Shape::Parked => self.parked(share).await?,
                Shape::Keyed => self.keyed(share).await?,
            }
            let taken = self.seqs.len() - before;
            shares.took(shape, taken, taken >= share);
        }
        Ok(())
    }

    /// Takes fresh rows (shape 0) or due ones (shape 1), once those of closed destinations are out
    /// of the way.
    async fn queue(&mut self, shape: i64, until: i64, rows: usize) -> Result<(), Error> {
        if !self.filter.closed.is_empty() && !self.park(shape, until).await? {
            self.next_due = Some(self.now); // There is more to look through.
            return Ok(());
        }
        let mut values = Vec::with_capacity(7);
        let statement = if shape == 0 {
            &self.sql.claim.fresh
        } else {
            values.push(Value::Int(until));
            &self.sql.claim.due
        };
        values.extend(self.filter.values());
        values.push(Value::Int(count(rows.saturating_add(self.seqs.len()))));
        let found = self
            .session
            .fetch(statement, &values, &[Cell::Int; 2])
            .await?;
        self.keep(&found, rows);
        Ok(())
    }

    /// Parks the rows of closed destinations at the front; false where there may be more of them.
    async fn park(&mut self, shape: i64, until: i64) -> Result<bool, Error> {
        let sql = &self.sql.claim;
        for _ in 0..PARKING_PASSES {
            let closed = Value::Text(&self.filter.closed_text);
            let window = [Value::Int(shape), Value::Int(until), closed];
            let window = &self
                .session
                .fetch(&sql.window, &window, &[Cell::Int; 2])
                .await?;
            if window.is_empty() {
                return Ok(true);
            }
            let entries = window.iter().map(|row| [shape, row.int(0), row.int(1)]);
            let list = json(&entries.collect::<Vec<Entry>>());
            let locked = numbers(self.session, &sql.lock_window, &[Value::Text(&list)]).await?;
            let list = json(&locked);
            self.session
                .execute(&sql.park, &[Value::Text(&list)])
                .await?;
            if locked.len() < WINDOW / 2 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes parked rows of destinations that are open to this claim, from the one on whose turn it
    /// is.
    async fn parked(&mut self, rows: usize) -> Result<(), Error> {
        let mut after = self.state.turns().parked;
        let mut places = Vec::new();
        for _ in 0..PARKING_PASSES {
            let mut values = self.filter.values().to_vec();
            values[1..3].fill(Value::NoText); // A type is asked for row by row.
            values.extend([Value::Int(after), Value::Int(count(WINDOW))]);
            let heads = &self.sql.claim.parked_heads;
            let heads = self.session.fetch(heads, &values, &[Cell::Int; 3]).await?;
            let open = heads.iter().filter(|head| head.is(1));
            places = open.map(|head| head.int(0)).take(PARKED).collect();
            let walked = heads.last().filter(|_| is_cut(&heads, WINDOW));
            let is_round = after == -1 && walked.is_none();
            let next = places.last().copied();
            after = next.or(walked.map(|head| head.int(0))).unwrap_or(-1);
            if !places.is_empty() || is_round {
                break;
            }
        }
        self.state.turns().parked = after;
        if places.is_empty() {
            return Ok(());
        }
        let mut values: Vec<Value<'_>> = places.iter().map(|place| Value::Int(*place)).collect();
        values.resize(PARKED, Value::Int(-1));
        values.extend(self.filter.values());
        values.push(Value::Int(count(rows.saturating_add(self.seqs.len()))));
        let parked = &self.sql.claim.parked;
        let found = self.session.fetch(parked, &values, &[Cell::Int; 2]).await?;
        self.keep(&found, rows);
        Ok(())
    }

    /// Keeps up to `rows` more rows (`seq`, size) as far as the limit of bytes allows. This
    /// transaction's own locks are not skipped: what it has already comes again.
    fn keep(&mut self, found: &[Row], rows: usize) {
        let kept: HashSet<i64> = self.seqs.iter().copied().collect();
        let new = found.iter().filter(|row| !kept.contains(&row.int(0)));
        for row in new.take(rows) {
            if !self.keep_one(row.int(0), row.int(1)) {
                break;
            }
        }
    }

    /// Whether a row fits; the first does whatever its size.
    pub(super) fn keep_one(&mut self, seq: i64, size: i64) -> bool {
        let size = size.unsigned_abs();
        if size > self.bytes && !self.seqs.is_empty() {
            self.full = true;
            return false;
        }
        self.bytes = self.bytes.saturating_sub(size);
        self.full = self.bytes == 0;
        self.seqs.push(seq);
        !self.full
    }

    async fn take(self) -> Result<Claim, Error> {
        let wait = |at| {
            let wait = from_micros(at).duration_since(from_micros(self.now));
            wait.unwrap_or(Duration::ZERO)
        };
        let mut claim = Claim {
            next_due: self.next_due.map(wait),
            ..Claim::default()
        };
        if self.seqs.is_empty() {
            return Ok(claim);
        }
        let list = json(&self.seqs);
        let list = Value::Text(&list);
        let token = Value::Bytes(self.request.token.as_bytes());
        let until = Value::Int(self.now.saturating_add(micros(self.request.lease)));
        let (take, taken) = (&self.sql.claim.take, &self.sql.claim.taken);
        self.session
            .execute(take, &[list, token, until, until])
            .await?;
        let letters = self.session.events(taken, &[list], &[Cell::Int]).await?;
        let now = from_micros(self.now);
        for letter in letters {
            add(&mut claim, self.request, letter, now);
        }
        claim
            .events
            .sort_unstable_by_key(|claimed| claimed.lease.seq);
        Ok(claim)
    }
}

/// Whether there may be more than these heads, which were found among so many entries.
pub(super) fn is_cut(heads: &[Row], entries: usize) -> bool {
    heads.iter().map(|head| head.int(2)).sum::<i64>() >= count(entries)
}

/// The one column of a query.
pub(super) async fn numbers<S: Session>(
    session: &mut S,
    sql: &Sql,
    values: &[Value<'_>],
) -> Result<Vec<i64>, Error> {
    let rows = session.fetch(sql, values, &[Cell::Int]).await?;
    Ok(rows.iter().map(|row| row.int(0)).collect())
}

fn add(claim: &mut Claim, request: &ClaimRequest, letter: Letter, now: SystemTime) {
    let death_blocks = letter.rest.is(0);
    let read = letter
        .event
        .and_then(|event| event.claimed(request.token, now, death_blocks));
    match read {
        Ok(claimed) => claim.events.push(claimed),
        Err(problem) => {
            let lease = Lease::new(letter.seq, request.token);
            claim.undecodable.push(Undecodable::new(lease, problem));
        }
    }
}

pub(super) fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
