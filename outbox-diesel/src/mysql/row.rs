//! Reading rows, by position.

use diesel::deserialize::Result;
use diesel::mysql::Mysql;
use diesel::row::Row;
use outbox_core::sql::EventRow;
use outbox_core::sql::mysql::{Cell, Letter, Row as Values};

use crate::read::{Columns, FromRow, ReadRows, Reader};

/// How many columns of a row make the event.
const EVENT_COLUMNS: usize = 17;

/// Rows of these columns.
pub(super) struct Cells<'a>(pub(super) &'a [Cell]);

impl ReadRows<Mysql> for Cells<'_> {
    type Out = Values;

    fn read<'a, R: Row<'a, Mysql>>(&self, row: &mut Reader<'_, Mysql, R>) -> Result<Values> {
        let mut values = Values::default();
        for column in self.0 {
            match column {
                Cell::Int => values.ints.push(row.maybe(Mysql::bigint)?),
                Cell::Bytes => values.bytes.push(row.maybe(Mysql::bytes)?),
            }
        }
        Ok(values)
    }
}

/// Rows of an event and these columns. An event that can't be read fails alone.
pub(super) struct Letters<'a>(pub(super) &'a [Cell]);

impl ReadRows<Mysql> for Letters<'_> {
    type Out = Letter;

    fn read<'a, R: Row<'a, Mysql>>(&self, row: &mut Reader<'_, Mysql, R>) -> Result<Letter> {
        let seq = row.rewound().get(Mysql::bigint)?;
        let event = EventRow::from_row(row).map_err(|problem| problem.to_string());
        let rest = Cells(self.0).read(&mut row.from(EVENT_COLUMNS))?;
        Ok(Letter::new(seq, event, rest))
    }
}
