//! Dead letters.

use super::{COLUMNS, Statements, after, before, now, sql};
use crate::clock::Clock;
use crate::sql::session::dead_letters;
use crate::sql::{Session, Sql, TableNames, Value, hex, json, micros};
use crate::{DeadLetter, DeadLetterFilter, DeathReason, Error, Page, Replay, error_text};

/// The statements on dead letters. Those with a filter share their first parameters:
///
/// `?1` only a greater `seq` · `?2` rows · `?3` these numbers (JSON array) · `?4` these ids (JSON
/// array, in hex) · `?5` event type · `?6` destination · `?7` key · `?8` reason · `?9` dead before
/// this instant. Null asks for nothing.
#[derive(Debug)]
pub(super) struct DeadLetterStatements {
    /// The shared parameters. Returns the columns of an event, the reason and the instant of death,
    /// by `seq`.
    list: Sql,
    /// `?1` a number. As `list`.
    get: Sql,
    /// The shared parameters, then `?10` now · `?11` microseconds between two of them · `?12` the
    /// new expiry or null. A trigger takes what it copies from the dead letters.
    replay: Sql,
    /// The shared parameters, then `?10` now · `?11` why. A trigger takes what it copies from the
    /// dead letters.
    discard: Sql,
}

const FILTER: &str = "seq > ?1 \
    AND (?3 IS NULL OR seq IN (SELECT value FROM json_each(?3))) \
    AND (?4 IS NULL OR hex(id) IN (SELECT value FROM json_each(?4))) \
    AND (?5 IS NULL OR event_type = ?5) AND (?6 IS NULL OR destination = ?6) \
    AND (?7 IS NULL OR \"key\" = ?7) AND (?8 IS NULL OR reason = ?8) \
    AND (?9 IS NULL OR dead_at <= ?9)";

impl DeadLetterStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        let list = format!(
            "SELECT {COLUMNS}, reason, dead_at FROM {{~dead}} WHERE {FILTER} ORDER BY seq LIMIT ?2"
        );
        let get = format!("SELECT {COLUMNS}, reason, dead_at FROM {{~dead}} WHERE seq = ?1");
        let replay = format!(
            "INSERT INTO {{~events}} (seq, id, event_type, destination, \"key\", payload, \
               content_type, aggregate_type, aggregate_id, headers, dedup_key, created_at, \
               expires_at, max_attempts, attempts, replays, last_error, shape, available_at) \
             SELECT seq, id, event_type, destination, \"key\", payload, content_type, \
               aggregate_type, aggregate_id, headers, dedup_key, ?10, ?12, max_attempts, 0, \
               replays + 1, last_error, CASE WHEN \"key\" IS NULL THEN 1 ELSE 2 END, \
               ?10 + ?11 * (row_number() OVER (ORDER BY seq) - 1) \
             FROM {{~dead}} AS d WHERE {FILTER} \
               AND NOT EXISTS (SELECT 1 FROM {{~events}} o WHERE o.id = d.id) \
             ORDER BY seq LIMIT ?2 ON CONFLICT DO NOTHING"
        );
        let discard = format!(
            "INSERT INTO {{~discards}} (seq, id, event_type, destination, \"key\", last_error, \
               death_reason, discard_reason, discarded_at) \
             SELECT seq, id, event_type, destination, \"key\", last_error, reason, ?11, ?10 \
             FROM {{~dead}} WHERE {FILTER} ORDER BY seq LIMIT ?2"
        );
        Self {
            list: sql(names, &list),
            get: sql(names, &get),
            replay: sql(names, &replay),
            discard: sql(names, &discard),
        }
    }
}

/// A filter as statements bind it.
struct Bound<'a> {
    filter: &'a DeadLetterFilter,
    seqs: Option<String>,
    ids: Option<String>,
    dead_before: Option<i64>,
}

impl<'a> Bound<'a> {
    fn new(filter: &'a DeadLetterFilter, clock: &dyn Clock) -> Self {
        let ids = filter.ids.as_ref().map(|ids| {
            let ids: Vec<String> = ids.iter().map(|id| hex(id.as_bytes())).collect();
            json(&ids)
        });
        Self {
            filter,
            seqs: filter.seqs.as_deref().map(json),
            ids,
            dead_before: filter.dead_for.map(|period| before(clock, period)),
        }
    }

    fn values(&self, after: Option<i64>, rows: u32) -> Vec<Value<'_>> {
        let filter = self.filter;
        vec![
            Value::Int(after.unwrap_or(i64::MIN)),
            Value::Int(rows.into()),
            Value::text(self.seqs.as_deref()),
            Value::text(self.ids.as_deref()),
            Value::text(filter.event_type.as_deref()),
            Value::text(filter.destination.as_deref()),
            Value::text(filter.key.as_deref()),
            Value::text(filter.reason.map(DeathReason::as_str)),
            Value::int(self.dead_before),
        ]
    }
}

/// A page of dead letters.
///
/// # Errors
///
/// Those of the session.
pub async fn list_dead<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    filter: &DeadLetterFilter,
    page: &Page,
) -> Result<Vec<DeadLetter>, Error> {
    let bound = Bound::new(filter, clock);
    let values = bound.values(page.after, page.rows);
    dead_letters(session, &sql.dead.list, &values).await
}

/// The dead letter with this number.
///
/// # Errors
///
/// Those of the session.
pub async fn get_dead<S: Session>(
    session: &mut S,
    sql: &Statements,
    seq: i64,
) -> Result<Option<DeadLetter>, Error> {
    let mut found = dead_letters(session, &sql.dead.get, &[Value::Int(seq)]).await?;
    Ok(found.pop())
}

/// Puts dead letters back among the pending events.
///
/// # Errors
///
/// Those of the session.
pub async fn replay<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    replay: &Replay,
) -> Result<u64, Error> {
    let bound = Bound::new(&replay.filter, clock);
    let mut values = bound.values(None, replay.rows);
    values.extend([
        Value::Int(now(clock)),
        Value::Int(micros(replay.pace)),
        Value::int(replay.expires_in.map(|ttl| after(clock, ttl))),
    ]);
    session.execute(&sql.dead.replay, &values).await
}

/// Deletes dead letters and records why.
///
/// # Errors
///
/// Those of the session.
pub async fn discard<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    filter: &DeadLetterFilter,
    rows: u32,
    reason: &str,
) -> Result<u64, Error> {
    let (bound, reason) = (Bound::new(filter, clock), error_text(reason));
    let mut values = bound.values(None, rows);
    values.extend([Value::Int(now(clock)), Value::Text(&reason)]);
    session.execute(&sql.dead.discard, &values).await
}
