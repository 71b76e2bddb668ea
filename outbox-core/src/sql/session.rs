//! What runs the statements: an adapter with a connection.

use async_trait::async_trait;

use super::{EventRow, Sql};
use crate::clock::from_micros;
use crate::{DeadLetter, DeathReason, Error, ErrorKind};

/// What a statement binds.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "every adapter must bind each")]
pub enum Value<'a> {
    /// Null, where other calls bind a number. (Each null says what it stands for, since drivers may
    /// keep a prepared statement for each combination of types.)
    NoInt,
    /// Null, where other calls bind text.
    NoText,
    /// Null, where other calls bind bytes.
    NoBytes,
    /// A number.
    Int(i64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An id or token: a UUID where the database has a type for it, else its bytes.
    Id([u8; 16]),
}

impl<'a> Value<'a> {
    pub(super) fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::NoText, Self::Text)
    }

    pub(super) fn bytes(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(Self::NoBytes, Self::Bytes)
    }

    pub(super) fn int(number: Option<i64>) -> Self {
        number.map_or(Self::NoInt, Self::Int)
    }
}

/// What kind of column a statement returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every adapter must read each")]
pub enum Cell {
    /// A number or null.
    Int,
    /// Bytes (or text in UTF-8) or null.
    Bytes,
}

/// A row of [`Session::fetch`], with a value in `ints` or in `bytes` for each column.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Row {
    /// The numbers, in their order.
    pub ints: Vec<Option<i64>>,
    /// The bytes, in their order.
    pub bytes: Vec<Option<Vec<u8>>>,
}

impl Row {
    pub(super) fn int(&self, at: usize) -> i64 {
        self.maybe(at).unwrap_or(0)
    }

    pub(super) fn maybe(&self, at: usize) -> Option<i64> {
        self.ints.get(at).copied().flatten()
    }

    pub(super) fn is(&self, at: usize) -> bool {
        self.int(at) != 0
    }

    pub(super) fn text(&self, at: usize) -> Option<String> {
        let bytes = self.bytes.get(at)?.as_deref()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// A row that holds an event: its number, then the event or why it makes none, then the columns
/// after it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Letter {
    /// The number.
    pub seq: i64,
    /// The event's columns.
    pub event: Result<EventRow, String>,
    /// The other columns.
    pub rest: Row,
}

impl Letter {
    /// A row as it was read.
    #[must_use]
    pub const fn new(seq: i64, event: Result<EventRow, String>, rest: Row) -> Self {
        Self { seq, event, rest }
    }

    /// The dead letter of a row that goes on with the reason and the instant (in µs). It is listed
    /// whatever it holds.
    fn dead(self) -> DeadLetter {
        let reason = DeathReason::from_name(&self.rest.text(0).unwrap_or_default());
        let event = self
            .event
            .unwrap_or_else(|_| EventRow::unreadable(self.seq))
            .event_as_far_as_readable();
        DeadLetter::new(event, reason, from_micros(self.rest.int(0)))
    }
}

/// One connection. Where several statements belong together, it is in a transaction.
#[async_trait]
pub trait Session: Send {
    /// Makes statements without values, by the simple protocol.
    async fn batch(&mut self, statements: &str) -> Result<(), Error>;

    /// Makes a statement; returns how many rows it matched.
    async fn execute(&mut self, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error>;

    /// Makes a query whose columns are `cells`.
    async fn fetch(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        cells: &[Cell],
    ) -> Result<Vec<Row>, Error>;

    /// Makes a query for events; `cells` are the columns after those of an event.
    async fn events(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        cells: &[Cell],
    ) -> Result<Vec<Letter>, Error>;
}

/// Makes a query for dead letters: the columns of an event, then the reason and the instant.
pub(super) async fn dead_letters<S: Session>(
    session: &mut S,
    sql: &Sql,
    values: &[Value<'_>],
) -> Result<Vec<DeadLetter>, Error> {
    let cells = [Cell::Bytes, Cell::Int];
    let found = session.events(sql, values, &cells).await?;
    Ok(found.into_iter().map(Letter::dead).collect())
}

/// The first number that a query without values returns, or 0.
pub(super) async fn number<S: Session>(session: &mut S, sql: &Sql) -> Result<i64, Error> {
    let rows = session.fetch(sql, &[], &[Cell::Int]).await?;
    Ok(rows.first().map_or(0, |row| row.int(0)))
}

/// The row of a query that always returns one.
pub(super) fn only(rows: Vec<Row>) -> Result<Row, Error> {
    let missing = || Error::new(ErrorKind::Other, "a query returned no row");
    rows.into_iter().next().ok_or_else(missing)
}
