//! Dead letters.

use outbox_core::sql::Sql;
use outbox_core::sql::micros;
use outbox_core::{
    DeadLetter, DeadLetterFilter, DeadLetters, DeathReason, Error, Page, Replay, async_trait,
    error_text,
};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::types::Uuid;
use sqlx::{Postgres, Row};

use super::PgStore;
use super::error::classify;
use super::row::{EVENT_COLUMNS, Stamp, column, event_row};
use crate::query;
use crate::retry::retried;

#[async_trait]
impl DeadLetters for PgStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let list = filtered(&self.sql.dead_letters.list, filter)
            .bind(page.after.unwrap_or(i64::MIN))
            .bind(i64::from(page.rows));
        let rows = self.fetch_all("list", list).await?;
        rows.iter().map(letter).collect()
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let mut letters = self
            .list(&DeadLetterFilter::seq(seq), &Page::default())
            .await?;
        Ok(letters.pop())
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        let count = retried!(
            self.counted(
                "replay",
                filtered(&self.sql.dead_letters.replay, &replay.filter)
                    .bind(i64::from(replay.rows))
                    .bind(micros(replay.pace))
                    .bind(replay.expires_in.map(micros))
            )
        )?;
        self.scan().settled(true);
        Ok(count)
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        let count = retried!(
            self.counted(
                "discard",
                filtered(&self.sql.dead_letters.discard, filter)
                    .bind(i64::from(rows))
                    .bind(error_text(reason))
            )
        )?;
        self.scan().settled(true);
        Ok(count)
    }
}

impl PgStore {
    /// Runs a statement whose one value is a count.
    pub(super) async fn counted(
        &self,
        operation: &'static str,
        statement: Query<'_, Postgres, PgArguments>,
    ) -> Result<u64, Error> {
        let row = self.fetch_one(operation, statement).await?;
        let count: i64 = row.try_get(0).map_err(|error| classify(operation, error))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

fn filtered<'q>(sql: &'q Sql, filter: &'q DeadLetterFilter) -> Query<'q, Postgres, PgArguments> {
    let ids = filter
        .ids
        .as_ref()
        .map(|ids| ids.iter().copied().map(Uuid::from).collect::<Vec<_>>());
    query(sql)
        .bind(filter.seqs.as_deref())
        .bind(ids)
        .bind(filter.event_type.as_deref())
        .bind(filter.destination.as_deref())
        .bind(filter.key.as_deref())
        .bind(filter.reason.map(DeathReason::as_str))
        .bind(filter.dead_for.map(micros))
}

fn letter(row: &PgRow) -> Result<DeadLetter, Error> {
    let read = || {
        let reason: &str = column(row, EVENT_COLUMNS)?;
        let dead_at: Stamp = column(row, EVENT_COLUMNS + 1)?;
        Ok((event_row(row)?, DeathReason::from_name(reason), dead_at.0))
    };
    let (event, reason, dead_at) = read().map_err(|error| classify("list", error))?;
    Ok(DeadLetter::new(
        event.event_as_far_as_readable(),
        reason,
        dead_at,
    ))
}
