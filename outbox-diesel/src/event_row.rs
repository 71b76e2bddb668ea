//! Reading an event.

use diesel::deserialize::Result;
use diesel::row::Row;
use outbox_core::sql::EventRow;

use crate::read::{Columns, FromRow, Reader};

impl<DB: Columns> FromRow<DB> for EventRow {
    fn from_row<'a, R: Row<'a, DB>>(row: &mut Reader<'_, DB, R>) -> Result<Self> {
        Ok(Self {
            seq: row.get(DB::bigint)?,
            id: row.get(DB::uuid)?,
            event_type: row.get(DB::text)?,
            destination: row.get(DB::text)?,
            key: row.maybe(DB::text)?,
            payload: row.get(DB::bytes)?.into(),
            content_type: row.get(DB::text)?,
            aggregate_type: row.maybe(DB::text)?,
            aggregate_id: row.maybe(DB::text)?,
            headers: row.maybe(DB::text)?,
            dedup_key: row.maybe(DB::text)?,
            created_at: row.get(DB::instant)?,
            expires_at: row.maybe(DB::instant)?,
            max_attempts: row.maybe(DB::integer)?,
            attempts: row.get(DB::integer)?,
            replays: row.get(DB::integer)?,
            last_error: row.maybe(DB::text)?,
        })
    }
}
