//! Enqueues in the caller's transaction.

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use outbox_core::EventId;
use outbox_core::sql::{Batches, NewRow, Winners, sparse};

use super::PgStore;
use super::error::classify;
use super::value::{Id, Value};
use crate::read::{As, Columns, FromRow, Reader};
use crate::rows::boolean;
use crate::statement::Statement;

const OPERATION: &str = "enqueue";

crate::producers::producers! {
    /// Through plain connections (`PgConnection`, say). Nothing here needs libpq.
    ///
    /// ```no_run
    /// # fn example<C: diesel::connection::LoadConnection<Backend = diesel::pg::Pg>>(
    /// #     conn: &mut C,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use outbox_core::NewEvent;
    /// use outbox_diesel::PgStore;
    ///
    /// let outbox = PgStore::enqueue_only();
    /// conn.transaction(|conn| {
    ///     outbox.enqueue_sync(conn, &NewEvent::bytes("T", "x").to("https://ci.example/hooks"))?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })
    /// # }
    /// ```
    PgStore, Pg
}

impl PgStore {
    async fn enqueue_on<C: Runs<Backend = Pg>>(
        &self,
        mut conn: C,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error> {
        self.limits.check_all(events)?;
        let failed = |error| classify(OPERATION, error);
        if let [event] = events
            && event.dedup().is_none()
        {
            let row = NewRow::new(event);
            conn.execute(self.one(&row)).await.map_err(failed)?;
            return Ok(vec![Enqueued::stored(event.event_id())]);
        }
        let batches = Batches::new(events);
        let mut winners = Winners::new();
        for batch in batches.iter() {
            let rows: Vec<NewRow<'_>> = batch.iter().map(|event| NewRow::new(event)).collect();
            let found = conn.read(self.many(&rows), &As::<Winner>::new()).await;
            let found = found.map_err(failed)?.into_iter();
            winners.extend(found.map(|Winner(key, id, new)| (key, (id, new))));
        }
        Ok(batches.answers(&winners))
    }

    fn one<'q>(&'q self, row: &'q NewRow<'q>) -> Statement<'q, Value<'q>> {
        let mut values = vec![
            Value::Uuid(Id(*row.id.as_bytes())),
            Value::Text(Some(row.event_type)),
            Value::Text(Some(row.destination)),
            Value::Text(row.key),
            Value::Bytes(row.payload),
            Value::Text(Some(row.content_type)),
            Value::Text(row.aggregate_type),
            Value::Text(row.aggregate_id),
            Value::Text(row.headers.as_deref()),
            Value::Integer(row.max_attempts),
        ];
        if !row.is_timed() {
            return Statement::new(&self.sql.enqueue.one, values);
        }
        values.extend([Value::BigInt(row.delay), Value::BigInt(row.ttl)]);
        Statement::new(&self.sql.enqueue.one_timed, values)
    }

    fn many<'q>(&'q self, rows: &'q [NewRow<'q>]) -> Statement<'q, Value<'q>> {
        let texts =
            |column: fn(&'q NewRow<'q>) -> Option<&'q str>| Value::Texts(sparse(rows, column));
        let dedup_keys = sparse(rows, |row| row.dedup_key);
        let text = match dedup_keys {
            Some(_) => &self.sql.enqueue.many_first,
            None => &self.sql.enqueue.many,
        };
        let ids = rows.iter().map(|row| Id(*row.id.as_bytes())).collect();
        let values = vec![
            Value::Uuids(Some(ids)),
            texts(|row| Some(row.event_type)),
            texts(|row| Some(row.destination)),
            texts(|row| row.key),
            Value::ManyBytes(rows.iter().map(|row| row.payload).collect()),
            texts(|row| Some(row.content_type)),
            texts(|row| row.aggregate_type),
            texts(|row| row.aggregate_id),
            texts(|row| row.headers.as_deref()),
            Value::MaybeIntegers(sparse(rows, |row| row.max_attempts)),
            Value::Texts(dedup_keys),
            Value::MaybeBigInts(sparse(rows, |row| row.delay)),
            Value::MaybeBigInts(sparse(rows, |row| row.ttl)),
        ];
        Statement::new(text, values)
    }
}

/// A de-duplication key, the event that has it, and whether that was stored just now.
struct Winner(String, EventId, bool);

impl FromRow<Pg> for Winner {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        Ok(Self(
            row.get(Pg::text)?,
            EventId::from_bytes(row.get(Pg::uuid)?),
            row.get(boolean)?,
        ))
    }
}
