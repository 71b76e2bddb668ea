//! Producers.

use super::{Statements, after, now, sql};
use crate::clock::Clock;
use crate::sql::{Cell, Session, Shape, Sql, TableNames, Value, header_text};
use crate::{Enqueued, Error, EventId, NewEvent};

/// How many rows one insert takes: a batch is cut into as few of these as will do, so that there
/// are few statements to prepare. From large to small; the largest binds 1,600 values.
const CHUNKS: [usize; 3] = [100, 10, 1];

const COLUMN_COUNT: usize = 16;

/// The statements of an enqueue.
#[derive(Debug)]
pub(super) struct EnqueueStatements {
    /// For each of [`CHUNKS`]: binds, for each row: id, event type, destination, key, payload,
    /// content type, aggregate type, aggregate id, headers, de-duplication key, created at, expires
    /// at, attempt limit, shape, available at, replays (0).
    insert: [Sql; 3],
    /// `?1` key · `?2` id · `?3` now. Returns a row where the key was free.
    take_dedup_key: Sql,
    /// `?1` key. Returns the id of the event that has it.
    dedup_owner: Sql,
}

impl EnqueueStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            insert: CHUNKS.map(|rows| sql(names, &insert(rows))),
            take_dedup_key: sql(
                names,
                "INSERT INTO {~dedup} (dedup_key, id, created_at) VALUES (?1, ?2, ?3) \
                 ON CONFLICT DO NOTHING RETURNING 1",
            ),
            dedup_owner: sql(names, "SELECT id FROM {~dedup} WHERE dedup_key = ?1"),
        }
    }
}

fn insert(rows: usize) -> String {
    let row = format!("({})", vec!["?"; COLUMN_COUNT].join(", "));
    format!(
        "INSERT INTO {{~events}} (id, event_type, destination, \"key\", payload, content_type, \
           aggregate_type, aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, \
           shape, available_at, replays) \
         VALUES {}",
        vec![row; rows].join(", ")
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
    let mut answers = Vec::with_capacity(events.len());
    let mut new = Vec::with_capacity(events.len());
    for event in events {
        answers.push(match dedup_owner(session, sql, clock, event).await? {
            Some(first) => Enqueued::duplicate_of(first),
            None => {
                new.push(event);
                Enqueued::stored(event.event_id())
            }
        });
    }
    let mut rest = new.as_slice();
    for (size, insert) in CHUNKS.into_iter().zip(&sql.insert) {
        while let Some((chunk, after)) = rest.split_at_checked(size) {
            store(session, insert, clock, chunk).await?;
            rest = after;
        }
    }
    Ok(answers)
}

/// Takes the event's key; the id of the event that has it, where another one has.
async fn dedup_owner<S: Session>(
    session: &mut S,
    sql: &EnqueueStatements,
    clock: &dyn Clock,
    event: &NewEvent,
) -> Result<Option<EventId>, Error> {
    let Some(key) = event.dedup() else {
        return Ok(None);
    };
    let (id, key) = (event.event_id(), Value::Text(key));
    let take = [key, Value::Bytes(id.as_bytes()), Value::Int(now(clock))];
    let taken = session
        .fetch(&sql.take_dedup_key, &take, &[Cell::Int])
        .await?;
    if !taken.is_empty() {
        return Ok(None);
    }
    let owner = session
        .fetch(&sql.dedup_owner, &[key], &[Cell::Bytes])
        .await?;
    let owner = owner.first().and_then(|row| row.bytes[0].as_deref());
    Ok(owner
        .and_then(|id| id.try_into().ok())
        .map(EventId::from_bytes))
}

async fn store<S: Session>(
    session: &mut S,
    insert: &Sql,
    clock: &dyn Clock,
    events: &[&NewEvent],
) -> Result<(), Error> {
    let ids: Vec<EventId> = events.iter().map(|event| event.event_id()).collect();
    let headers: Vec<Option<String>> = events
        .iter()
        .map(|event| header_text(event.headers()))
        .collect();
    let mut values = Vec::with_capacity(events.len() * COLUMN_COUNT);
    for ((event, id), headers) in events.iter().zip(&ids).zip(&headers) {
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
    session.execute(insert, &values).await.map(drop)
}
