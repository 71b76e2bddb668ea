//! Enqueues, in the caller's transaction.

use super::{Cell, LANE, Session, Statements, Value, sql};
use crate::sql::cut::cut;
use crate::sql::{Batches, NewRow, Sql, TableNames, Winners, hex, json};
use crate::{Enqueued, Error, EventId, LeaseToken, NewEvent};

/// How many rows one insert takes: a batch is cut into as few of these as will do, so that there
/// are few statements to prepare.
pub(super) const CHUNKS: [usize; 4] = [500, 50, 5, 1];
/// The most bytes of one insert, of several events: no more than one event may have by default, so that
/// a server whose `max_allowed_packet` bears the one bears the other.
const BYTES: usize = 1 << 20;

/// How many keys one statement takes; less than half of [`BYTES`].
const KEYS: usize = 500;

#[derive(Debug)]
pub(super) struct EnqueueSql {
    /// For each of [`CHUNKS`]; for each row: destination, key, id, event type, content type,
    /// aggregate type, aggregate id, headers, de-duplication key, attempt limit, size, payload,
    /// shape, delay twice, time to live (both in µs).
    insert: [Sql; 4],
    /// Mark, `[[key, id], …]`.
    take_keys: Sql,
    /// Key, id, whether it has the mark. Mark, `[[key], …]`.
    owners: Sql,
    /// Those of keys that have the mark, without locks. `[[key], …]`, mark.
    own_keys: Sql,
    /// Frees keys. `[[key], …]`.
    free_keys: Sql,
}

impl EnqueueSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            insert: CHUNKS.map(|rows| sql(names, &insert(rows))),
            take_keys: sql(
                names,
                "INSERT INTO {dedup} (dedup_key, id, mark, created_at) \
                 SELECT UNHEX(j.k), UNHEX(j.id), ?, :now \
                 FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
                   k VARCHAR(510) PATH '$[0]', id VARCHAR(32) PATH '$[1]')) j \
                 ON DUPLICATE KEY UPDATE mark = mark",
            ),
            owners: sql(
                names,
                "SELECT d.dedup_key, d.id, d.mark = ? \
                 FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$[0]')) j \
                 STRAIGHT_JOIN {dedup} d FORCE INDEX (PRIMARY) ON d.dedup_key = UNHEX(j.k) \
                 :lock(d)",
            ),
            own_keys: sql(
                names,
                "SELECT d.dedup_key \
                 FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$[0]')) j \
                 STRAIGHT_JOIN {dedup} d FORCE INDEX (PRIMARY) ON d.dedup_key = UNHEX(j.k) \
                 WHERE d.mark = ?",
            ),
            free_keys: sql(
                names,
                "DELETE d FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$[0]')) j \
                 STRAIGHT_JOIN {dedup} d FORCE INDEX (PRIMARY) ON d.dedup_key = UNHEX(j.k)",
            ),
        }
    }
}

fn insert(rows: usize) -> String {
    let row = format!(
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
          CASE shape WHEN 2 THEN {LANE} WHEN 1 THEN :now + ? ELSE 0 END, \
          :now + ?, :now, :now + ?)"
    );
    format!(
        "INSERT INTO {{events}} (destination, `key`, id, event_type, content_type, aggregate_type, \
           aggregate_id, headers, dedup_key, max_attempts, size, payload, shape, place, \
           available_at, created_at, expires_at) VALUES {}",
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
    events: &[NewEvent],
) -> Result<Vec<Enqueued>, Error> {
    let batches = Batches::new(events).of(CHUNKS[0]).bytes(BYTES);
    let events = batches.iter();
    let columns = events
        .iter()
        .map(|batch| batch.iter().map(|event| NewRow::new(event)).collect());
    let mut rows: Vec<Vec<NewRow<'_>>> = columns.collect();
    let (sql, mark) = (&sql.enqueue, LeaseToken::new());
    let winners = take_keys(session, sql, &keys_of(rows.iter().flatten()), mark).await?;
    for batch in &mut rows {
        batch.retain(|row| {
            let winner = row.dedup_key.and_then(|key| winners.get(key));
            winner.is_none_or(|(_, new)| *new)
        });
    }
    for (nth, batch) in rows.iter().enumerate() {
        let mut stored = 0;
        for (size, chunk) in cut(batch, CHUNKS) {
            let insert = &sql.insert[size];
            if let Err(error) = session.execute(insert, &values(chunk)).await {
                let later = rows[nth + 1..].iter().flatten();
                let left = batch[stored..].iter().chain(later);
                free_keys(session, sql, &keys_of(left), mark).await;
                return Err(error);
            }
            stored += chunk.len();
        }
    }
    Ok(batches.answers(&winners))
}

/// A de-duplication key and an id, in hexadecimal digits.
type Key = (String, String);

/// Takes the keys of all events before any is stored, in the order of the keys, so that two calls with
/// the same keys cannot each wait for the other.
async fn take_keys<S: Session>(
    session: &mut S,
    sql: &EnqueueSql,
    keys: &[Key],
    mark: LeaseToken,
) -> Result<Winners, Error> {
    let mut winners = Winners::new();
    for (nth, some) in keys.chunks(KEYS).enumerate() {
        if let Err(error) = take_some(session, sql, some, mark, &mut winners).await {
            free_keys(session, sql, &keys[..nth * KEYS + some.len()], mark).await;
            return Err(error);
        }
    }
    Ok(winners)
}

async fn take_some<S: Session>(
    session: &mut S,
    sql: &EnqueueSql,
    keys: &[Key],
    mark: LeaseToken,
    winners: &mut Winners,
) -> Result<(), Error> {
    let list = json(keys);
    let values = [Value::Bytes(mark.as_bytes()), Value::Text(&list)];
    session.execute(&sql.take_keys, &values).await?;
    let cells = [Cell::Bytes, Cell::Bytes, Cell::Int];
    for row in session.fetch(&sql.owners, &values, &cells).await? {
        let id = row.bytes.get(1).cloned().flatten().unwrap_or_default();
        if let (Some(key), Ok(id)) = (row.text(0), id.try_into()) {
            winners.insert(key, (EventId::from_bytes(id), row.is(0)));
        }
    }
    Ok(())
}

/// Frees the keys of events that were not stored after all. A caller who gives up rolls them back; one
/// without a transaction, or who goes on with his, would keep keys of events that are nowhere. Where
/// this fails too, the connection is lost, and with it the transaction. It looks first which keys are the
/// call's own, so that it waits for nobody where the server has rolled these back.
async fn free_keys<S: Session>(session: &mut S, sql: &EnqueueSql, keys: &[Key], mark: LeaseToken) {
    for some in keys.chunks(KEYS) {
        let list = json(some);
        let values = [Value::Text(&list), Value::Bytes(mark.as_bytes())];
        let own = session.fetch(&sql.own_keys, &values, &[Cell::Bytes]).await;
        let own = own.unwrap_or_default();
        let own = own.iter().filter_map(|row| row.bytes.first()?.as_deref());
        let own: Vec<[String; 1]> = own.map(|key| [hex(key)]).collect();
        if !own.is_empty() {
            let list = json(&own);
            let _ = session.execute(&sql.free_keys, &[Value::Text(&list)]).await;
        }
    }
}

/// The rows' de-duplication keys and ids, in the order of the keys.
fn keys_of<'a>(rows: impl Iterator<Item = &'a NewRow<'a>>) -> Vec<Key> {
    let pair = |row: &NewRow<'_>| Some((hex(row.dedup_key?.as_bytes()), hex(row.id.as_bytes())));
    let mut keys: Vec<_> = rows.filter_map(pair).collect();
    keys.sort_unstable();
    keys
}

fn values<'a>(rows: &'a [NewRow<'a>]) -> Vec<Value<'a>> {
    let mut values = Vec::with_capacity(rows.len() * 16);
    for row in rows {
        let delay = row.delay.unwrap_or(0);
        let shape = match row.key {
            Some(_) => 2,
            None => i64::from(delay > 0),
        };
        values.extend([
            Value::Text(row.destination),
            Value::text(row.key),
            Value::Bytes(row.id.as_bytes()),
            Value::Text(row.event_type),
            Value::Text(row.content_type),
            Value::text(row.aggregate_type),
            Value::text(row.aggregate_id),
            Value::text(row.headers.as_deref()),
            Value::text(row.dedup_key),
            Value::int(row.max_attempts.map(i64::from)),
            Value::Int(i64::try_from(row.payload.len()).unwrap_or(i64::MAX)),
            Value::Bytes(row.payload),
            Value::Int(shape),
            Value::Int(delay),
            Value::Int(delay),
            Value::int(row.ttl),
        ]);
    }
    values
}
