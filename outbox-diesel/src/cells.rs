//! Reading rows whose columns the caller names.

use diesel::deserialize::Result;
use diesel::row::Row;
use outbox_core::sql::{Cell, EventRow, Letter, Row as Values};

use crate::read::{Columns, FromRow, ReadRows, Reader};

/// How many columns of a row make the event.
const EVENT_COLUMNS: usize = 17;

/// Rows of these columns.
pub(crate) struct Cells<'a>(pub(crate) &'a [Cell]);

impl<DB: Columns> ReadRows<DB> for Cells<'_> {
    type Out = Values;

    fn read<'a, R: Row<'a, DB>>(&self, row: &mut Reader<'_, DB, R>) -> Result<Values> {
        let mut values = Values::default();
        for column in self.0 {
            match column {
                Cell::Int => values.ints.push(row.maybe(DB::bigint)?),
                Cell::Bytes => values.bytes.push(row.maybe(DB::bytes)?),
            }
        }
        Ok(values)
    }
}

/// Rows of an event and these columns. An event that can't be read fails alone.
pub(crate) struct Letters<'a>(pub(crate) &'a [Cell]);

impl<DB: Columns> ReadRows<DB> for Letters<'_> {
    type Out = Letter;

    fn read<'a, R: Row<'a, DB>>(&self, row: &mut Reader<'_, DB, R>) -> Result<Letter> {
        let seq = row.rewound().get(DB::bigint)?;
        let event = EventRow::from_row(row).map_err(|problem| problem.to_string());
        let rest = Cells(self.0).read(&mut row.from(EVENT_COLUMNS))?;
        Ok(Letter::new(seq, event, rest))
    }
}
