//! Dead letters.

use outbox_core::sql::{hex, json, micros};
use outbox_core::{
    DeadLetter, DeadLetterFilter, DeadLetters, DeathReason, Error, Page, Replay, async_trait,
    error_text,
};

use super::value::Value;
use super::{SqliteStore, execute, rows};
use crate::rows::Letter;

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let (filter, page) = (filter.clone(), page.clone());
        let found: Vec<Letter> = self
            .on_pool("list", move |store, conn| {
                let values = store.conditions(&filter, page.after, page.rows);
                rows(conn, &store.sql.dead.list, values)
            })
            .await?;
        Ok(found.into_iter().map(Letter::letter).collect())
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let found: Vec<Letter> = self
            .on_pool("get", move |store, conn| {
                rows(conn, &store.sql.dead.get, vec![Value::number(seq)])
            })
            .await?;
        Ok(found.into_iter().next().map(Letter::letter))
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        let replay = replay.clone();
        self.on_pool("replay", move |store, conn| {
            let mut values = store.conditions(&replay.filter, None, replay.rows);
            values.push(Value::number(store.now_micros()));
            values.push(Value::number(micros(replay.pace)));
            values.push(Value::BigInt(
                replay.expires_in.map(|ttl| store.in_micros(ttl)),
            ));
            execute(conn, &store.sql.dead.replay, values)
        })
        .await
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        let (filter, reason) = (filter.clone(), error_text(reason));
        self.on_pool("discard", move |store, conn| {
            let mut values = store.conditions(&filter, None, rows);
            values.push(Value::number(store.now_micros()));
            values.push(Value::text(Some(&reason)));
            execute(conn, &store.sql.dead.discard, values)
        })
        .await
    }
}

impl SqliteStore {
    fn conditions<'q>(
        &self,
        filter: &'q DeadLetterFilter,
        after: Option<i64>,
        rows: u32,
    ) -> Vec<Value<'q>> {
        let ids = filter.ids.as_ref().map(|ids| {
            let ids: Vec<String> = ids.iter().map(|id| hex(id.as_bytes())).collect();
            json(&ids)
        });
        vec![
            Value::number(after.unwrap_or(i64::MIN)),
            Value::number(rows),
            Value::owned(filter.seqs.as_deref().map(json)),
            Value::owned(ids),
            Value::text(filter.event_type.as_deref()),
            Value::text(filter.destination.as_deref()),
            Value::text(filter.key.as_deref()),
            Value::text(filter.reason.map(DeathReason::as_str)),
            Value::BigInt(filter.dead_for.map(|period| self.ago(period))),
        ]
    }
}
