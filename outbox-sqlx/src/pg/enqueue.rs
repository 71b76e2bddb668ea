//! Enqueues in the caller's transaction.

use outbox_core::sql::{Batches, NewRow, Winners, sparse};
use outbox_core::{Enqueue, Enqueued, Error, EventId, NewEvent, async_trait};
use sqlx::types::Uuid;
use sqlx::{PgConnection, Row};

use super::PgStore;
use super::error::classify;
use crate::query;

const OPERATION: &str = "enqueue";

/// Through a `&mut PgConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Enqueue<PgConnection> for PgStore {
    async fn enqueue(&self, conn: &mut PgConnection, event: NewEvent) -> Result<Enqueued, Error> {
        self.limits.check(&event)?;
        if event.dedup().is_some() {
            let mut answers = self.store_all(conn, vec![event]).await?;
            return Ok(answers.remove(0));
        }
        let row = NewRow::new(&event);
        let sql = &self.sql.enqueue;
        let text = if row.is_timed() {
            &sql.one_timed
        } else {
            &sql.one
        };
        let mut insert = query(text)
            .bind(Uuid::from_bytes(*row.id.as_bytes()))
            .bind(row.event_type)
            .bind(row.destination)
            .bind(row.key)
            .bind(row.payload)
            .bind(row.content_type)
            .bind(row.aggregate_type)
            .bind(row.aggregate_id)
            .bind(row.headers.as_deref())
            .bind(row.max_attempts);
        if row.is_timed() {
            insert = insert.bind(row.delay).bind(row.ttl);
        }
        insert
            .persistent(!self.in_transactions)
            .execute(conn)
            .await
            .map_err(|error| classify(OPERATION, error))?;
        Ok(Enqueued::stored(event.event_id()))
    }

    async fn enqueue_all(
        &self,
        conn: &mut PgConnection,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        events
            .iter()
            .try_for_each(|event| self.limits.check(event))?;
        self.store_all(conn, events).await
    }
}

impl PgStore {
    async fn store_all(
        &self,
        conn: &mut PgConnection,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        let batches = Batches::new(&events);
        let mut winners = Winners::new();
        for batch in batches.iter() {
            let rows: Vec<NewRow<'_>> = batch.iter().map(|event| NewRow::new(event)).collect();
            self.store_batch(conn, &rows, &mut winners).await?;
        }
        Ok(batches.answers(&winners))
    }

    async fn store_batch(
        &self,
        conn: &mut PgConnection,
        rows: &[NewRow<'_>],
        winners: &mut Winners,
    ) -> Result<(), Error> {
        /// One column of the batch.
        fn each<'a, T>(rows: &'a [NewRow<'a>], column: impl Fn(&'a NewRow<'a>) -> T) -> Vec<T> {
            rows.iter().map(column).collect()
        }
        let sql = &self.sql.enqueue;
        let dedup_keys = sparse(rows, |row| row.dedup_key);
        let text = match dedup_keys {
            Some(_) => &sql.many_first,
            None => &sql.many,
        };
        let found = query(text)
            .bind(each(rows, |row| Uuid::from_bytes(*row.id.as_bytes())))
            .bind(each(rows, |row| row.event_type))
            .bind(each(rows, |row| row.destination))
            .bind(sparse(rows, |row| row.key))
            .bind(each(rows, |row| row.payload))
            .bind(each(rows, |row| row.content_type))
            .bind(sparse(rows, |row| row.aggregate_type))
            .bind(sparse(rows, |row| row.aggregate_id))
            .bind(sparse(rows, |row| row.headers.as_deref()))
            .bind(sparse(rows, |row| row.max_attempts))
            .bind(dedup_keys)
            .bind(sparse(rows, |row| row.delay))
            .bind(sparse(rows, |row| row.ttl))
            .persistent(!self.in_transactions)
            .fetch_all(conn)
            .await
            .map_err(|error| classify(OPERATION, error))?;
        for row in found {
            let read = || Ok((row.try_get(0)?, row.try_get::<Uuid, _>(1)?, row.try_get(2)?));
            let (key, id, new) = read().map_err(|error| classify(OPERATION, error))?;
            winners.insert(key, (EventId::from(id), new));
        }
        Ok(())
    }
}
