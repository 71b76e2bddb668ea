//! Rows that statements of PostgreSQL return.

use diesel::deserialize::Result;
use diesel::row::Row;

use crate::read::{Columns, FromRow, Reader};

/// An open event, and whether a claim has it.
pub(crate) struct Held(pub(crate) i64, pub(crate) bool);

impl<DB: Columns> FromRow<DB> for Held {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        Ok(Self(row.get(DB::bigint)?, row.get(DB::boolean)?))
    }
}
