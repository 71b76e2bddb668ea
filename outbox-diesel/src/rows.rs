//! Rows that statements of PostgreSQL return.

use diesel::deserialize::{FromSql, Result};
use diesel::pg::{Pg, PgValue};
use diesel::row::Row;
use diesel::sql_types::Bool;

use crate::read::{Columns, FromRow, Reader};

/// An open event, and whether a claim has it.
pub(crate) struct Held(pub(crate) i64, pub(crate) bool);

impl FromRow<Pg> for Held {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> Result<Self> {
        Ok(Self(row.get(Pg::bigint)?, row.get(boolean)?))
    }
}

pub(crate) fn boolean(value: PgValue<'_>) -> Result<bool> {
    FromSql::<Bool, Pg>::from_sql(value)
}
