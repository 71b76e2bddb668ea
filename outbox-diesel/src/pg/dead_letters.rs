//! Dead letters.

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use outbox_core::sql::{Sql, micros};
use outbox_core::{
    DeadLetter, DeadLetterFilter, DeadLetters, DeathReason, Error, Page, Replay, async_trait,
    error_text,
};

use super::value::{Id, Value};
use super::{PgStore, retried, row, rows};
use crate::read::{Columns, FromRow, Reader};
use crate::rows::Letter;

#[async_trait]
impl DeadLetters for PgStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let mut conn = self.connection().await?;
        let mut values = conditions(filter);
        values.push(Value::BigInt(Some(page.after.unwrap_or(i64::MIN))));
        values.push(Value::BigInt(Some(page.rows.into())));
        let found: Vec<Letter> =
            rows(&mut conn, "list", &self.sql.dead_letters.list, values).await?;
        Ok(found.into_iter().map(Letter::letter).collect())
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let mut letters = self
            .list(&DeadLetterFilter::seq(seq), &Page::default())
            .await?;
        Ok(letters.pop())
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        let count = retried!(self.counted("replay", &self.sql.dead_letters.replay, || {
            let mut values = conditions(&replay.filter);
            values.push(Value::BigInt(Some(replay.rows.into())));
            values.push(Value::BigInt(Some(micros(replay.pace))));
            values.push(Value::BigInt(replay.expires_in.map(micros)));
            values
        }))?;
        self.scan().settled(true);
        Ok(count)
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        let reason = error_text(reason);
        let count = retried!(self.counted("discard", &self.sql.dead_letters.discard, || {
            let mut values = conditions(filter);
            values.push(Value::BigInt(Some(rows.into())));
            values.push(Value::Text(Some(&reason)));
            values
        }))?;
        self.scan().settled(true);
        Ok(count)
    }
}

impl PgStore {
    /// Runs a statement whose one value is a count.
    pub(super) async fn counted<'q>(
        &self,
        operation: &'static str,
        sql: &Sql,
        values: impl FnOnce() -> Vec<Value<'q>> + Send,
    ) -> Result<u64, Error> {
        let mut conn = self.connection().await?;
        let Number(count) = row(&mut conn, operation, sql, values()).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

fn conditions(filter: &DeadLetterFilter) -> Vec<Value<'_>> {
    let ids = filter.ids.as_ref();
    vec![
        Value::BigInts(filter.seqs.as_deref()),
        Value::Uuids(ids.map(|ids| ids.iter().map(|id| Id(*id.as_bytes())).collect())),
        Value::Text(filter.event_type.as_deref()),
        Value::Text(filter.destination.as_deref()),
        Value::Text(filter.key.as_deref()),
        Value::Text(filter.reason.map(DeathReason::as_str)),
        Value::BigInt(filter.dead_for.map(micros)),
    ]
}

/// One number.
struct Number(i64);

impl FromRow<Pg> for Number {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        row.get(Pg::bigint).map(Self)
    }
}
