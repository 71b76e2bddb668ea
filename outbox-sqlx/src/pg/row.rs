//! Reading rows, by position.

use std::time::SystemTime;

use outbox_core::Bytes;
use outbox_core::clock::from_micros;
use outbox_core::sql::EventRow;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgRow, PgValueFormat, PgValueRef};
use sqlx::types::Uuid;
use sqlx::{Decode, Error, Postgres, Row};

/// How many columns of a row make the event.
pub(super) const EVENT_COLUMNS: usize = 17;

/// A `timestamptz`.
pub(super) struct Stamp(pub(super) SystemTime);

impl<'r> Decode<'r, Postgres> for Stamp {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        /// From the Unix epoch to PostgreSQL's, 2000-01-01, in µs.
        const EPOCH: i64 = 946_684_800_000_000;
        if value.format() == PgValueFormat::Text {
            return Err("a timestamp in text form".into());
        }
        let micros = i64::from_be_bytes(value.as_bytes()?.try_into()?);
        Ok(Self(from_micros(micros.saturating_add(EPOCH))))
    }
}

/// The column at `index`, whose type the statement fixes.
pub(super) fn column<'r, T: Decode<'r, Postgres>>(
    row: &'r PgRow,
    index: usize,
) -> Result<T, Error> {
    row.try_get_unchecked(index)
}

/// The columns of an event, from the first on.
pub(super) fn event_row(row: &PgRow) -> Result<EventRow, Error> {
    let id: Uuid = column(row, 1)?;
    let payload: &[u8] = column(row, 5)?;
    Ok(EventRow {
        seq: column(row, 0)?,
        id: id.into_bytes(),
        event_type: column(row, 2)?,
        destination: column(row, 3)?,
        key: column(row, 4)?,
        payload: Bytes::copy_from_slice(payload),
        content_type: column(row, 6)?,
        aggregate_type: column(row, 7)?,
        aggregate_id: column(row, 8)?,
        headers: column(row, 9)?,
        dedup_key: column(row, 10)?,
        created_at: column::<Stamp>(row, 11)?.0,
        expires_at: column::<Option<Stamp>>(row, 12)?.map(|stamp| stamp.0),
        max_attempts: column(row, 13)?,
        attempts: column(row, 14)?,
        replays: column(row, 15)?,
        last_error: column(row, 16)?,
    })
}
