//! Reading rows, by position.

use outbox_core::Bytes;
use outbox_core::clock::from_micros;
use outbox_core::sql::EventRow;
use outbox_core::sql::mysql::{Cell, Letter, Row as Cells};
use sqlx::mysql::MySqlRow;
use sqlx::{Error, Row};

/// How many columns of a row make the event.
const EVENT_COLUMNS: usize = 17;

/// The columns from `first` on. Which kind of integer an expression makes differs between servers,
/// so types are not compared.
pub(super) fn cells(row: &MySqlRow, first: usize, columns: &[Cell]) -> Result<Cells, Error> {
    let mut cells = Cells::default();
    for (place, column) in columns.iter().enumerate() {
        match column {
            Cell::Int => cells.ints.push(row.try_get_unchecked(first + place)?),
            Cell::Bytes => cells.bytes.push(row.try_get_unchecked(first + place)?),
        }
    }
    Ok(cells)
}

/// An event and the columns after it.
pub(super) fn letter(row: &MySqlRow, columns: &[Cell]) -> Result<Letter, Error> {
    let seq = row.try_get_unchecked(0)?;
    let event = event_row(row, seq).map_err(|error| error.to_string());
    Ok(Letter::new(seq, event, cells(row, EVENT_COLUMNS, columns)?))
}

fn event_row(row: &MySqlRow, seq: i64) -> Result<EventRow, Error> {
    let id: Vec<u8> = row.try_get_unchecked(1)?;
    let text = |at: usize| row.try_get_unchecked::<String, _>(at);
    let maybe = |at: usize| row.try_get_unchecked::<Option<String>, _>(at);
    let expires_at: Option<i64> = row.try_get_unchecked(12)?;
    Ok(EventRow {
        seq,
        id: id
            .try_into()
            .map_err(|_| Error::Decode("column `id` has not 16 bytes".into()))?,
        event_type: text(2)?,
        destination: text(3)?,
        key: maybe(4)?,
        payload: Bytes::from(row.try_get_unchecked::<Vec<u8>, _>(5)?),
        content_type: text(6)?,
        aggregate_type: maybe(7)?,
        aggregate_id: maybe(8)?,
        headers: maybe(9)?,
        dedup_key: maybe(10)?,
        created_at: from_micros(row.try_get_unchecked(11)?),
        expires_at: expires_at.map(from_micros),
        max_attempts: row.try_get_unchecked(13)?,
        attempts: row.try_get_unchecked(14)?,
        replays: row.try_get_unchecked(15)?,
        last_error: maybe(16)?,
    })
}
