//! Enqueues in the caller's transaction.

use diesel::connection::LoadConnection;
use diesel::deserialize;
use diesel::row::Row;
use diesel::sqlite::Sqlite;
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::sqlite::CHUNKS;
use outbox_core::sql::{Shape, Sql, header_text};
use outbox_core::{Enqueue, Enqueued, Error, EventId, NewEvent, async_trait};

use super::SqliteStore;
use super::error::classify;
use super::value::Value;
use crate::read::{As, Columns, FromRow, Reader};
use crate::run::{Asynchronous, Plain, Runs, blocking};
use crate::statement::Statement;

const OPERATION: &str = "enqueue";

/// Through any asynchronous connection to SQLite, pooled ones included.
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Sqlite>> Enqueue<C> for SqliteStore {
    async fn enqueue(&self, conn: &mut C, event: NewEvent) -> Result<Enqueued, Error> {
        let mut answers = self.enqueue_all(conn, vec![event]).await?;
        Ok(answers.remove(0))
    }

    async fn enqueue_all(
        &self,
        conn: &mut C,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.enqueue_on(Asynchronous(conn), &events).await
    }
}

/// Through plain connections.
impl SqliteStore {
    /// Stores one event, as [`Enqueue::enqueue`] does. Blocks the thread.
    ///
    /// # Errors
    ///
    /// As [`Enqueue`].
    pub fn enqueue_sync<C>(&self, conn: &mut C, event: &NewEvent) -> Result<Enqueued, Error>
    where
        C: LoadConnection<Backend = Sqlite>,
    {
        let mut answers = self.enqueue_all_sync(conn, std::slice::from_ref(event))?;
        Ok(answers.remove(0))
    }

    /// Stores many events, as [`Enqueue::enqueue_all`] does. Blocks the thread.
    ///
    /// # Errors
    ///
    /// As [`Enqueue`].
    pub fn enqueue_all_sync<C>(
        &self,
        conn: &mut C,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error>
    where
        C: LoadConnection<Backend = Sqlite>,
    {
        blocking(self.enqueue_on(Plain(conn), events))
    }

    async fn enqueue_on<C: Runs<Sqlite>>(
        &self,
        mut conn: C,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error> {
        events
            .iter()
            .try_for_each(|event| self.limits.check(event))?;
        let failed = |error| classify(OPERATION, error);
        let now = self.now_micros();
        let mut ids = Vec::with_capacity(events.len());
        for event in events {
            let free = match self.take_key(event, now) {
                Some(take) => {
                    let taken = conn.read(take, &As::<Taken>::new()).await;
                    !taken.map_err(failed)?.is_empty()
                }
                None => true,
            };
            ids.push(if free {
                None
            } else {
                let owner = conn.read(self.owner(event), &As::<Owner>::new()).await;
                owner.map_err(failed)?.pop().map(|Owner(id)| id)
            });
        }
        for (sql, chunk) in self.chunks(events, &ids) {
            let insert = self.insert(sql, &chunk, now);
            conn.execute(insert).await.map_err(failed)?;
        }
        Ok(answers(events, &ids))
    }

    /// Takes the event's key, where it has one: returns a row where the key was free.
    fn take_key<'q>(&'q self, event: &'q NewEvent, now: i64) -> Option<Statement<'q, Value<'q>>> {
        let key = event.dedup()?;
        let values = vec![
            Value::text(Some(key)),
            Value::Id(*event.event_id().as_bytes()),
            Value::number(now),
        ];
        Some(Statement::new(&self.sql.enqueue.take_dedup_key, values))
    }

    /// Returns the event that has this event's key.
    fn owner<'q>(&'q self, event: &'q NewEvent) -> Statement<'q, Value<'q>> {
        let values = vec![Value::text(event.dedup())];
        Statement::new(&self.sql.enqueue.dedup_owner, values)
    }

    /// The new events by the statements that store them.
    fn chunks<'q>(
        &'q self,
        events: &'q [NewEvent],
        owners: &[Option<EventId>],
    ) -> Vec<(&'q Sql, Vec<&'q NewEvent>)> {
        let new: Vec<&NewEvent> = events
            .iter()
            .zip(owners)
            .filter_map(|(event, owner)| owner.is_none().then_some(event))
            .collect();
        let mut rest = new.as_slice();
        let mut chunks = Vec::new();
        for (size, sql) in CHUNKS.into_iter().zip(&self.sql.enqueue.insert) {
            while let Some((chunk, after)) = rest.split_at_checked(size) {
                chunks.push((sql, chunk.to_vec()));
                rest = after;
            }
        }
        chunks
    }

    fn insert<'q>(
        &self,
        sql: &'q Sql,
        events: &[&'q NewEvent],
        now: i64,
    ) -> Statement<'q, Value<'q>> {
        let mut values = Vec::with_capacity(events.len() * 16);
        for event in events {
            let (shape, available_at) = match (event.ordering_key(), event.delayed_by()) {
                (Some(_), delay) => (Shape::KEYED, delay.map(|delay| self.in_micros(delay))),
                (None, Some(delay)) => (Shape::DUE, Some(self.in_micros(delay))),
                (None, None) => (Shape::FRESH, None),
            };
            values.extend([
                Value::Id(*event.event_id().as_bytes()),
                Value::text(Some(event.event_type())),
                Value::text(Some(event.destination())),
                Value::text(event.ordering_key()),
                Value::Bytes(event.payload()),
                Value::text(Some(event.media_type())),
                Value::text(event.aggregate_type()),
                Value::text(event.aggregate_id()),
                Value::owned(header_text(event.headers())),
                Value::text(event.dedup()),
                Value::number(now),
                Value::BigInt(event.time_to_live().map(|ttl| self.in_micros(ttl))),
                Value::BigInt(event.attempt_limit().map(i64::from)),
                Value::number(shape),
                Value::BigInt(available_at),
                Value::number(0),
            ]);
        }
        Statement::new(sql, values)
    }
}

fn answers(events: &[NewEvent], owners: &[Option<EventId>]) -> Vec<Enqueued> {
    let answer = |(event, owner): (&NewEvent, &Option<EventId>)| match owner {
        Some(first) => Enqueued::duplicate_of(*first),
        None => Enqueued::stored(event.event_id()),
    };
    events.iter().zip(owners).map(answer).collect()
}

/// The key was free.
struct Taken;

impl FromRow<Sqlite> for Taken {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        _: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        Ok(Self)
    }
}

/// The event that has a key.
struct Owner(EventId);

impl FromRow<Sqlite> for Owner {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        row: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        let id = row.get(Sqlite::uuid)?;
        Ok(Self(EventId::from_bytes(id)))
    }
}
