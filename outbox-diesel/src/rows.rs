//! Rows that are the same on every database.

use std::time::SystemTime;

use diesel::deserialize::Result;
use diesel::row::Row;
use outbox_core::sql::{EventRow, InboxRow, KeyRow};
use outbox_core::{DeadLetter, DeathReason};

use crate::read::{Columns, FromRow, Reader};

/// A dead letter.
pub(crate) struct Letter {
    event: EventRow,
    reason: String,
    dead_at: SystemTime,
}

impl Letter {
    pub(crate) fn letter(self) -> DeadLetter {
        let reason = DeathReason::from_name(&self.reason);
        DeadLetter::new(self.event.event_as_far_as_readable(), reason, self.dead_at)
    }
}

impl<DB: Columns> FromRow<DB> for Letter {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        Ok(Self {
            event: EventRow::from_row(row)?,
            reason: row.get(DB::text)?,
            dead_at: row.get(DB::instant)?,
        })
    }
}

/// An open event, and whether a claim has it.
pub(crate) struct Held(pub(crate) i64, pub(crate) bool);

impl<DB: Columns> FromRow<DB> for Held {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        Ok(Self(row.get(DB::bigint)?, row.get(DB::boolean)?))
    }
}

/// Pending, claimed, due, parked, dead, blocked; and the oldest due event's age.
pub(crate) struct Counts {
    pub(crate) counts: [i64; 6],
    pub(crate) oldest: Option<i64>,
}

impl<DB: Columns> FromRow<DB> for Counts {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        let mut counts = [0; 6];
        for count in &mut counts[..4] {
            *count = row.get(DB::bigint)?;
        }
        let oldest = row.maybe(DB::bigint)?;
        for count in &mut counts[4..] {
            *count = row.get(DB::bigint)?;
        }
        Ok(Self { counts, oldest })
    }
}

impl<DB: Columns> FromRow<DB> for KeyRow {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        Ok(Self {
            same: row.get(DB::boolean)?,
            answer: row.maybe(DB::bytes)?,
            left: row.maybe(DB::bigint)?,
        })
    }
}

impl<DB: Columns> FromRow<DB> for InboxRow {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        row.maybe(DB::bytes).map(Self)
    }
}

/// Whether another token has a key or a lock.
pub(crate) struct Another(pub(crate) bool);

impl<DB: Columns> FromRow<DB> for Another {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        row.get(DB::boolean).map(Self)
    }
}

/// How many µs a lock stays closed.
pub(crate) struct Left(pub(crate) i64);

impl<DB: Columns> FromRow<DB> for Left {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        row.get(DB::bigint).map(Self)
    }
}
