//! Dead letters.

use super::{COLUMNS, Sql, TableNames, sql};

/// The statements on dead letters. Those with a filter share their first parameters:
///
/// `?1` only a greater `seq` · `?2` rows · `?3` these numbers (JSON array) · `?4` these ids (JSON
/// array, in hex) · `?5` event type · `?6` destination · `?7` key · `?8` reason · `?9` dead before
/// this instant. Null asks for nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetterStatements {
    /// The shared parameters. Returns the columns of an event, the reason and the instant of death,
    /// by `seq`.
    pub list: Sql,
    /// `?1` a number. As `list`.
    pub get: Sql,
    /// The shared parameters, then `?10` now · `?11` microseconds between two of them · `?12` the
    /// new expiry or null. A trigger takes what it copies from the dead letters.
    pub replay: Sql,
    /// The shared parameters, then `?10` now · `?11` why. A trigger takes what it copies from the
    /// dead letters.
    pub discard: Sql,
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
             FROM {{~dead}} WHERE {FILTER} ORDER BY seq LIMIT ?2 \
             ON CONFLICT DO NOTHING"
        );
        let discard = format!(
            "INSERT INTO {{~discarded}} (seq, id, event_type, destination, \"key\", last_error, \
               death_reason, reason, discarded_at) \
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
