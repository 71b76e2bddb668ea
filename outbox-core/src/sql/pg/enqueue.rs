//! Enqueues, in the caller's transaction.

use super::sql;
use crate::sql::{Sql, TableNames};

/// Statements that store events.
///
/// Parameters of the first two: `id`, `event_type`, `destination`, `key`, `payload`, `content_type`,
/// `aggregate_type`, `aggregate_id`, `headers`, `max_attempts`. Of the bulk forms: arrays of these,
/// then of `dedup_key`, delay in µs or null, time to live in µs or null; null stands for an array of
/// nulls, and costs nothing.
#[derive(Debug)]
#[non_exhaustive]
pub struct EnqueueSql {
    /// One event without a de-duplication key, a delay and an expiry. Returns no row.
    pub one: Sql,
    /// The same with `$11` delay in µs or null, `$12` time to live in µs or null.
    pub one_timed: Sql,
    /// Events without de-duplication keys, in their order. Returns no row.
    pub many: Sql,
    /// Any events, in their order. The events with a de-duplication key that are not the first of
    /// it in the call must be left out. Returns each key, the id of its first event and whether that
    /// was stored just now.
    pub many_first: Sql,
}

impl EnqueueSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let fill = |template: &str| {
            let text = template
                .replace(":columns", COLUMNS)
                .replace(":values", VALUES)
                .replace(":input", INPUT);
            sql(names, &text)
        };
        Self {
            one: fill(ONE),
            one_timed: fill(ONE_TIMED),
            many: fill(MANY),
            many_first: fill(MANY_FIRST),
        }
    }
}

/// Instants are the table's defaults, which cost less than the expressions of [`ONE_TIMED`].
const ONE: &str = "INSERT INTO {events} (id, event_type, destination, key, payload, content_type,
    aggregate_type, aggregate_id, headers, max_attempts, shape)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, CASE WHEN $4::text IS NULL THEN 0 ELSE 2 END)";

const ONE_TIMED: &str = "INSERT INTO {events} (id, event_type, destination, key, payload,
    content_type, aggregate_type, aggregate_id, headers, max_attempts, available_at, expires_at,
    shape)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
    statement_timestamp() + COALESCE($11::bigint, 0) * interval '1 microsecond',
    statement_timestamp() + $12::bigint * interval '1 microsecond',
    CASE WHEN $11::bigint > 0 THEN CASE WHEN $4::text IS NULL THEN 1 ELSE 4 END
         ELSE CASE WHEN $4::text IS NULL THEN 0 ELSE 2 END END)";

/// Set-returning functions in the list of columns: in `FROM`, each array would be copied first.
const INPUT: &str = "
    SELECT unnest($1::uuid[]) AS id, unnest($2::text[]) AS event_type,
        unnest($3::text[]) AS destination, unnest($4::text[]) AS key,
        unnest($5::bytea[]) AS payload, unnest($6::text[]) AS content_type,
        unnest($7::text[]) AS aggregate_type, unnest($8::text[]) AS aggregate_id,
        unnest($9::text[]) AS headers, unnest($10::integer[]) AS max_attempts,
        unnest($11::text[]) AS dedup_key, unnest($12::bigint[]) AS delay,
        unnest($13::bigint[]) AS ttl, generate_subscripts($1::uuid[], 1) AS nth";

const COLUMNS: &str = "id, event_type, destination, key, payload, content_type, aggregate_type,
        aggregate_id, headers, max_attempts, dedup_key, available_at, expires_at, shape";

const VALUES: &str = "i.id, i.event_type, i.destination, i.key, i.payload, i.content_type,
        i.aggregate_type, i.aggregate_id, i.headers, i.max_attempts, i.dedup_key,
        statement_timestamp() + COALESCE(i.delay, 0) * interval '1 microsecond',
        statement_timestamp() + i.ttl * interval '1 microsecond',
        CASE WHEN i.delay > 0 THEN CASE WHEN i.key IS NULL THEN 1 ELSE 4 END
             ELSE CASE WHEN i.key IS NULL THEN 0 ELSE 2 END END";

const MANY: &str = "INSERT INTO {events} (:columns)
    SELECT :values
    FROM (:input) i";

const MANY_FIRST: &str = "WITH input AS MATERIALIZED (:input), first AS (
    INSERT INTO {dedup} AS d (dedup_key, id)
    SELECT dedup_key, id FROM input WHERE dedup_key IS NOT NULL ORDER BY dedup_key COLLATE \"C\"
    ON CONFLICT (dedup_key) DO UPDATE SET dedup_key = d.dedup_key
    RETURNING d.dedup_key, d.id, d.xmax = 0 AS new -- a row that was there has a locker
), stored AS (
    INSERT INTO {events} (:columns)
    SELECT :values
    FROM input i LEFT JOIN first f ON f.dedup_key = i.dedup_key
    WHERE i.dedup_key IS NULL OR f.new
    ORDER BY i.nth
)
SELECT dedup_key, id, new FROM first";
