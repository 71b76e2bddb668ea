//! Enqueues in the caller's transaction.

use outbox_core::sql::sqlite::CHUNKS;
use outbox_core::sql::{Shape, header_text};
use outbox_core::{Enqueue, Enqueued, Error, EventId, NewEvent, async_trait};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Error as SqlxError, Row};

use super::SqliteStore;
use super::error::classify;
use crate::query;

/// Through a `&mut SqliteConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Enqueue<SqliteConnection> for SqliteStore {
    async fn enqueue(
        &self,
        conn: &mut SqliteConnection,
        event: NewEvent,
    ) -> Result<Enqueued, Error> {
        let mut answers = self.enqueue_all(conn, vec![event]).await?;
        Ok(answers.remove(0))
    }

    async fn enqueue_all(
        &self,
        conn: &mut SqliteConnection,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        events
            .iter()
            .try_for_each(|event| self.limits.check(event))?;
        self.store_all(conn, &events)
            .await
            .map_err(|error| classify("enqueue", error))
    }
}

impl SqliteStore {
    async fn store_all(
        &self,
        conn: &mut SqliteConnection,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, SqlxError> {
        let now = self.now_micros();
        let mut answers = Vec::with_capacity(events.len());
        let mut new = Vec::with_capacity(events.len());
        for event in events {
            let owner = self.dedup_owner(conn, event, now).await?;
            answers.push(match owner {
                Some(first) => Enqueued::duplicate_of(first),
                None => Enqueued::stored(event.event_id()),
            });
            if owner.is_none() {
                new.push(event);
            }
        }
        let mut rest = new.as_slice();
        for (size, sql) in CHUNKS.into_iter().zip(&self.sql.enqueue.insert) {
            while let Some((chunk, after)) = rest.split_at_checked(size) {
                self.insert(conn, sql, chunk, now).await?;
                rest = after;
            }
        }
        Ok(answers)
    }

    /// Takes the event's key; the id of the event that has it, where one has.
    async fn dedup_owner(
        &self,
        conn: &mut SqliteConnection,
        event: &NewEvent,
        now: i64,
    ) -> Result<Option<EventId>, SqlxError> {
        let Some(key) = event.dedup() else {
            return Ok(None);
        };
        let id = event.event_id();
        let taken = query(&self.sql.enqueue.take_dedup_key)
            .bind(key)
            .bind(&id.as_bytes()[..])
            .bind(now)
            .fetch_optional(&mut *conn)
            .await?;
        if taken.is_some() {
            return Ok(None);
        }
        let owner = query(&self.sql.enqueue.dedup_owner)
            .bind(key)
            .fetch_one(conn)
            .await?;
        let bytes: &[u8] = owner.try_get(0)?;
        let bytes = bytes
            .try_into()
            .map_err(|source| SqlxError::Decode(Box::new(source)))?;
        Ok(Some(EventId::from_bytes(bytes)))
    }

    async fn insert(
        &self,
        conn: &mut SqliteConnection,
        sql: &std::sync::Arc<str>,
        events: &[&NewEvent],
        now: i64,
    ) -> Result<(), SqlxError> {
        let ids: Vec<EventId> = events.iter().map(|event| event.event_id()).collect();
        let mut insert = query(sql);
        for (event, id) in events.iter().zip(&ids) {
            let (shape, available_at) = match (event.ordering_key(), event.delayed_by()) {
                (Some(_), delay) => (Shape::KEYED, delay.map(|delay| self.in_micros(delay))),
                (None, Some(delay)) => (Shape::DUE, Some(self.in_micros(delay))),
                (None, None) => (Shape::FRESH, None),
            };
            insert = insert
                .bind(&id.as_bytes()[..])
                .bind(event.event_type())
                .bind(event.destination())
                .bind(event.ordering_key())
                .bind(event.payload().as_ref())
                .bind(event.media_type())
                .bind(event.aggregate_type())
                .bind(event.aggregate_id())
                .bind(header_text(event.headers()))
                .bind(event.dedup())
                .bind(now)
                .bind(event.time_to_live().map(|ttl| self.in_micros(ttl)))
                .bind(event.attempt_limit())
                .bind(shape)
                .bind(available_at)
                .bind(0);
        }
        insert.execute(conn).await.map(drop)
    }
}
