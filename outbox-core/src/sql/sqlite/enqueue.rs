//! Producers.

use std::collections::HashSet;

use super::{Statements, after, now, sql};
use crate::clock::Clock;
use crate::sql::cut::cut;
use crate::sql::{
    Batches, Cell, Row, Session, Shape, Sql, TableNames, Value, Winners, header_text, json,
};
use crate::{Enqueued, Error, EventId, NewEvent};

/// How many rows one insert takes: a batch is cut into as few of these as will do, so that there
/// are few statements to prepare. The largest binds 32,000 values; SQLite takes 32,766.
const CHUNKS: [usize; 4] = [2_000, 100, 10, 1];

/// The most bytes of one insert, of several events.
const BYTES: usize = 16 << 20;

const COLUMN_COUNT: usize = 16;

/// The statements of an enqueue.
#[derive(Debug)]
pub(super) struct EnqueueStatements {
    /// For each of [`CHUNKS`]: binds, for each row: id, event type, destination, key, payload,
    /// content type, aggregate type, aggregate id, headers, de-duplication key, created at, expires
    /// at, attempt limit, shape, available at, replays (0).
    insert: [Sql; 4],
    /// The same for rows some of which have de-duplication keys, which a trigger takes: in the same
    /// statement, so that also without a transaction no key is taken for an event that is not stored.
    /// Leaves out those whose key is taken. Returns the ids of those that it stored.
    insert_first: [Sql; 4],
    /// `?1` keys (JSON array). Returns each that is taken, and the id of the event that has it.
    owners: Sql,
}

impl EnqueueStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            insert: CHUNKS.map(|rows| sql(names, &insert(&values_of(rows)))),
            insert_first: CHUNKS.map(|rows| {
                let free = format!(
                    "SELECT * FROM ({}) AS given WHERE given.column10 IS NULL OR NOT EXISTS ( \
                       SELECT 1 FROM {{~dedup}} d WHERE d.dedup_key = given.column10) \
                     RETURNING id",
                    values_of(rows)
                );
                sql(names, &insert(&free))
            }),
            owners: sql(
                names,
                "SELECT dedup_key, id FROM {~dedup} \
                 WHERE dedup_key IN (SELECT value FROM json_each(?1))",
            ),
        }
    }
}

fn values_of(rows: usize) -> String {
    let row = format!("({})", vec!["?"; COLUMN_COUNT].join(", "));
    format!("VALUES {}", vec![row; rows].join(", "))
}

fn insert(source: &str) -> String {
    format!(
        "INSERT INTO {{~events}} (id, event_type, destination, \"key\", payload, content_type, \
           aggregate_type, aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, \
           shape, available_at, replays) {source}"
    )
}

/// Stores events that were checked against the limits.
///
/// # Errors
///
/// Those of the session.
pub async fn enqueue<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    events: &[NewEvent],
) -> Result<Vec<Enqueued>, Error> {
    let sql = &sql.enqueue;
    let batches = Batches::new(events).of(CHUNKS[0]).bytes(BYTES);
    let mut winners = Winners::new();
    for batch in batches.iter() {
        for (size, chunk) in cut(&batch, CHUNKS) {
            if chunk.iter().all(|event| event.dedup().is_none()) {
                store(session, &sql.insert[size], clock, chunk).await?;
            } else {
                let insert = &sql.insert_first[size];
                store_first(session, insert, &sql.owners, clock, chunk, &mut winners).await?;
            }
        }
    }
    Ok(batches.answers(&winners))
}

/// Stores those whose de-duplication key is free; says who has the keys.
async fn store_first<S: Session>(
    session: &mut S,
    insert: &Sql,
    owners: &Sql,
    clock: &dyn Clock,
    events: &[&NewEvent],
    winners: &mut Winners,
) -> Result<(), Error> {
    let rows = Rows::new(events);
    let values = rows.values(clock);
    let stored = session.fetch(insert, &values, &[Cell::Bytes]).await?;
    let stored: HashSet<EventId> = stored.iter().filter_map(|row| id(row, 0)).collect();
    let mut taken = Vec::new();
    for event in events {
        let Some(key) = event.dedup() else { continue };
        if stored.contains(&event.event_id()) {
            winners.insert(key.to_owned(), (event.event_id(), true));
        } else {
            taken.push(key);
        }
    }
    if taken.is_empty() {
        return Ok(());
    }
    let (keys, cells) = (json(&taken), [Cell::Bytes; 2]);
    for row in session.fetch(owners, &[Value::Text(&keys)], &cells).await? {
        if let (Some(key), Some(id)) = (row.text(0), id(&row, 1)) {
            winners.insert(key, (id, false));
        }
    }
    Ok(())
}

fn id(row: &Row, at: usize) -> Option<EventId> {
    let id = row.bytes.get(at)?.as_deref()?.try_into().ok()?;
    Some(EventId::from_bytes(id))
}

async fn store<S: Session>(
    session: &mut S,
    insert: &Sql,
    clock: &dyn Clock,
    events: &[&NewEvent],
) -> Result<(), Error> {
    let rows = Rows::new(events);
    session.execute(insert, &rows.values(clock)).await.map(drop)
}

/// What the values of some events point into.
struct Rows<'a> {
    events: &'a [&'a NewEvent],
    ids: Vec<EventId>,
    headers: Vec<Option<String>>,
}

impl<'a> Rows<'a> {
    fn new(events: &'a [&'a NewEvent]) -> Self {
        Self {
            events,
            ids: events.iter().map(|event| event.event_id()).collect(),
            headers: events
                .iter()
                .map(|event| header_text(event.headers()))
                .collect(),
        }
    }

    fn values(&self, clock: &dyn Clock) -> Vec<Value<'_>> {
        let rows = self.events.iter().zip(&self.ids).zip(&self.headers);
        let mut values = Vec::with_capacity(self.events.len() * COLUMN_COUNT);
        for ((event, id), headers) in rows {
            let (shape, available_at) = match (event.ordering_key(), event.delayed_by()) {
                (Some(_), delay) => (Shape::KEYED, delay.map(|delay| after(clock, delay))),
                (None, Some(delay)) => (Shape::DUE, Some(after(clock, delay))),
                (None, None) => (Shape::FRESH, None),
            };
            values.extend([
                Value::Bytes(id.as_bytes()),
                Value::Text(event.event_type()),
                Value::Text(event.destination()),
                Value::text(event.ordering_key()),
                Value::Bytes(event.payload()),
                Value::Text(event.media_type()),
                Value::text(event.aggregate_type()),
                Value::text(event.aggregate_id()),
                Value::text(headers.as_deref()),
                Value::text(event.dedup()),
                Value::Int(now(clock)),
                Value::int(event.time_to_live().map(|ttl| after(clock, ttl))),
                Value::int(event.attempt_limit().map(i64::from)),
                Value::Int(shape.into()),
                Value::int(available_at),
                Value::Int(0),
            ]);
        }
        values
    }
}
