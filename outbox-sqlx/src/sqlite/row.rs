//! Reading rows, by position.

use outbox_core::Bytes;
use outbox_core::clock::from_micros;
use outbox_core::sql::EventRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Error, Row};

/// How many columns of a row make the event.
pub(super) const EVENT_COLUMNS: usize = 17;

/// The columns of an event, from the first on.
pub(super) fn event_row(row: &SqliteRow) -> Result<EventRow, Error> {
    let id: &[u8] = row.try_get(1)?;
    let expires_at: Option<i64> = row.try_get(12)?;
    Ok(EventRow {
        seq: row.try_get(0)?,
        id: id
            .try_into()
            .map_err(|source| decode("id", Box::new(source)))?,
        event_type: row.try_get(2)?,
        destination: row.try_get(3)?,
        key: row.try_get(4)?,
        payload: Bytes::from(row.try_get::<Vec<u8>, _>(5)?),
        content_type: row.try_get(6)?,
        aggregate_type: row.try_get(7)?,
        aggregate_id: row.try_get(8)?,
        headers: row.try_get(9)?,
        dedup_key: row.try_get(10)?,
        created_at: from_micros(row.try_get(11)?),
        expires_at: expires_at.map(from_micros),
        max_attempts: row.try_get(13)?,
        attempts: row.try_get(14)?,
        replays: row.try_get(15)?,
        last_error: row.try_get(16)?,
    })
}

fn decode(column: &str, source: sqlx::error::BoxDynError) -> Error {
    Error::ColumnDecode {
        index: column.to_owned(),
        source,
    }
}
