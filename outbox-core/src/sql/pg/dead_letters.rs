//! Dead letters. Each statement runs in autocommit mode.
//!
//! The filter parameters are, in order and each nullable: seqs and ids (arrays as text), event type,
//! destination, key, reason, and for how many µs the letter is dead.

use super::unblock::unblocking;
use super::{Statements, count, event_columns, sql};
use crate::sql::session::dead_letters;
use crate::sql::{Session, Sql, TableNames, Value, hex, micros};
use crate::{DeadLetter, DeadLetterFilter, DeathReason, Error, Page, Replay, error_text};

/// Statements on dead letters; `$1` to `$7` are the filter.
#[derive(Debug)]
pub(super) struct DeadLetterSql {
    /// `$8` after this seq, `$9` most rows. The columns of an event, then `reason`, `dead_at` in µs.
    list: Sql,
    /// `$8` most rows, `$9` µs between two, `$10` new time to live in µs or null. One row: how many.
    replay: Sql,
    /// `$8` most rows, `$9` why. One row: how many.
    discard: Sql,
}

impl DeadLetterSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let call = |function: &str, rest: &str| {
            let arrays = "$1::bigint[], $2::uuid[]";
            let text =
                format!("SELECT letters FROM {{{function}}}({arrays}, $3, $4, $5, $6, $7, {rest})");
            sql(names, &text)
        };
        Self {
            list: sql(names, &LIST.replace(":filter", FILTER)),
            replay: call("replay_v1", "$8, $9, $10"),
            discard: call("discard_v1", "$8, $9"),
        }
    }
}

const FILTER: &str = "($1::bigint[] IS NULL OR d.seq = ANY ($1::bigint[]))
      AND ($2::uuid[] IS NULL OR d.id = ANY ($2::uuid[]))
      AND ($3::text IS NULL OR d.event_type = $3)
      AND ($4::text IS NULL OR d.destination = $4)
      AND ($5::text IS NULL OR d.key = $5)
      AND ($6::text IS NULL OR d.reason = $6)
      AND ($7::bigint IS NULL OR d.dead_at <= now() - $7 * interval '1 microsecond')";

const LIST: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", reason, (extract(epoch FROM dead_at) * 1000000)::bigint
FROM {dead} d
WHERE :filter AND d.seq > $8
ORDER BY d.seq
LIMIT $9"
);

/// `$8` most rows, `$9` µs between two, `$10` new time to live in µs or null.
pub(super) fn replay_letters() -> String {
    unblocking(&REPLAY.replace(":filter", FILTER), "back")
}

/// `$8` most rows, `$9` why.
pub(super) fn discard_letters() -> String {
    unblocking(&DISCARD.replace(":filter", FILTER), "noted")
}

const REPLAY: &str = "picked AS MATERIALIZED (
    SELECT d.seq, d.id FROM {dead} d
    WHERE :filter
      AND NOT EXISTS (SELECT FROM {events} e WHERE e.id = d.id)
    ORDER BY d.seq
    LIMIT $8
    FOR UPDATE OF d SKIP LOCKED
), gone AS (
    DELETE FROM {dead} d
    USING (SELECT DISTINCT ON (id) seq FROM picked ORDER BY id, seq) p
    WHERE d.seq = p.seq
    RETURNING d.*
), back AS (
    INSERT INTO {events} (seq, id, available_at, created_at, expires_at, replays, max_attempts,
        shape, event_type, destination, key, content_type, aggregate_type, aggregate_id, headers,
        dedup_key, last_error, payload)
    SELECT seq, id, now() + wait * interval '1 microsecond', now(),
        now() + $10::bigint * interval '1 microsecond', replays + 1, max_attempts,
        CASE WHEN key IS NULL THEN 1 WHEN wait > 0 THEN 4 ELSE 2 END,
        event_type, destination, key, content_type, aggregate_type, aggregate_id, headers,
        dedup_key, last_error, payload
    FROM (SELECT *, (row_number() OVER (ORDER BY seq) - 1) * $9::bigint AS wait FROM gone) g
    ORDER BY seq
    RETURNING 1
)";

const DISCARD: &str = "picked AS MATERIALIZED (
    SELECT d.seq FROM {dead} d
    WHERE :filter
    ORDER BY d.seq
    LIMIT $8
    FOR UPDATE OF d SKIP LOCKED
), gone AS (
    DELETE FROM {dead} d USING picked p WHERE d.seq = p.seq
    RETURNING d.*
), noted AS (
    INSERT INTO {discards} (seq, id, event_type, destination, key, death_reason, last_error,
        discard_reason, discarded_at)
    SELECT seq, id, event_type, destination, key, reason, last_error, $9, now() FROM gone
    RETURNING 1
)";

/// A filter as statements bind it.
struct Bound<'a> {
    filter: &'a DeadLetterFilter,
    seqs: Option<String>,
    ids: Option<String>,
}

impl<'a> Bound<'a> {
    fn new(filter: &'a DeadLetterFilter) -> Self {
        let array = |all: Vec<String>| format!("{{{}}}", all.join(","));
        let seqs = filter.seqs.as_ref();
        let ids = filter.ids.as_ref();
        Self {
            filter,
            seqs: seqs.map(|seqs| array(seqs.iter().map(i64::to_string).collect())),
            ids: ids.map(|ids| array(ids.iter().map(|id| hex(id.as_bytes())).collect())),
        }
    }

    fn values(&self) -> Vec<Value<'_>> {
        let filter = self.filter;
        vec![
            Value::text(self.seqs.as_deref()),
            Value::text(self.ids.as_deref()),
            Value::text(filter.event_type.as_deref()),
            Value::text(filter.destination.as_deref()),
            Value::text(filter.key.as_deref()),
            Value::text(filter.reason.map(DeathReason::as_str)),
            Value::int(filter.dead_for.map(micros)),
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
    filter: &DeadLetterFilter,
    page: &Page,
) -> Result<Vec<DeadLetter>, Error> {
    let bound = Bound::new(filter);
    let mut values = bound.values();
    values.push(Value::Int(page.after.unwrap_or(i64::MIN)));
    values.push(Value::Int(page.rows.into()));
    dead_letters(session, &sql.dead_letters.list, &values).await
}

/// Puts dead letters back among the pending events.
///
/// # Errors
///
/// Those of the session.
pub async fn replay<S: Session>(
    session: &mut S,
    sql: &Statements,
    replay: &Replay,
) -> Result<u64, Error> {
    let bound = Bound::new(&replay.filter);
    let mut values = bound.values();
    values.push(Value::Int(replay.rows.into()));
    values.push(Value::Int(micros(replay.pace)));
    values.push(Value::int(replay.expires_in.map(micros)));
    count(session, &sql.dead_letters.replay, &values).await
}

/// Deletes dead letters and records why.
///
/// # Errors
///
/// Those of the session.
pub async fn discard<S: Session>(
    session: &mut S,
    sql: &Statements,
    filter: &DeadLetterFilter,
    rows: u32,
    reason: &str,
) -> Result<u64, Error> {
    let (bound, reason) = (Bound::new(filter), error_text(reason));
    let mut values = bound.values();
    values.push(Value::Int(rows.into()));
    values.push(Value::Text(&reason));
    count(session, &sql.dead_letters.discard, &values).await
}
