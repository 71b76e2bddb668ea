//! Dead letters.

use outbox_core::clock::from_micros;
use outbox_core::sql::{hex, json, micros};
use outbox_core::{
    DeadLetter, DeadLetterFilter, DeadLetters, DeathReason, Error, Page, Replay, async_trait,
};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, Sqlite};

use super::SqliteStore;
use super::error::classify;
use super::row::{EVENT_COLUMNS, event_row};
use crate::query;

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let list = self.filtered(query(&self.sql.dead.list), filter, page.after, page.rows);
        let rows = list
            .fetch_all(&self.pool)
            .await
            .map_err(|error| classify("list dead letters", error))?;
        rows.iter().map(letter).collect()
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let row = query(&self.sql.dead.get)
            .bind(seq)
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| classify("get dead letter", error))?;
        row.as_ref().map(letter).transpose()
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        self.filtered(
            query(&self.sql.dead.replay),
            &replay.filter,
            None,
            replay.rows,
        )
        .bind(self.now_micros())
        .bind(micros(replay.pace))
        .bind(replay.expires_in.map(|ttl| self.in_micros(ttl)))
        .execute(&self.pool)
        .await
        .map(|done| done.rows_affected())
        .map_err(|error| classify("replay", error))
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        self.filtered(query(&self.sql.dead.discard), filter, None, rows)
            .bind(self.now_micros())
            .bind(outbox_core::error_text(reason))
            .execute(&self.pool)
            .await
            .map(|done| done.rows_affected())
            .map_err(|error| classify("discard", error))
    }
}

impl SqliteStore {
    fn filtered<'q>(
        &self,
        query: Query<'q, Sqlite, SqliteArguments>,
        filter: &DeadLetterFilter,
        after: Option<i64>,
        rows: u32,
    ) -> Query<'q, Sqlite, SqliteArguments> {
        let ids = filter.ids.as_ref().map(|ids| {
            let ids: Vec<String> = ids.iter().map(|id| hex(id.as_bytes())).collect();
            json(&ids)
        });
        query
            .bind(after.unwrap_or(i64::MIN))
            .bind(rows)
            .bind(filter.seqs.as_deref().map(json))
            .bind(ids)
            .bind(filter.event_type.clone())
            .bind(filter.destination.clone())
            .bind(filter.key.clone())
            .bind(filter.reason.map(DeathReason::as_str))
            .bind(filter.dead_for.map(|period| self.ago(period)))
    }
}

fn letter(row: &SqliteRow) -> Result<DeadLetter, Error> {
    let failed = |error| classify("read dead letter", error);
    let event = event_row(row).map_err(failed)?;
    let reason: &str = row.try_get(EVENT_COLUMNS).map_err(failed)?;
    let dead_at = row.try_get(EVENT_COLUMNS + 1).map_err(failed)?;
    Ok(DeadLetter::new(
        event.event_as_far_as_readable(),
        DeathReason::from_name(reason),
        from_micros(dead_at),
    ))
}
