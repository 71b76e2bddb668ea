//! Enqueues, in the caller's transaction.

use super::sql;
use crate::sql::{Sql, TableNames};

/// Statements that store events. Parameters of both: `id`, `event_type`, `destination`, `key`,
/// `payload`, `content_type`, `aggregate_type`, `aggregate_id`, `headers`, `dedup_key`,
/// `max_attempts`, delay in µs or null, time to live in µs or null; of the bulk form, arrays of them.
#[derive(Debug)]
#[non_exhaustive]
pub struct EnqueueSql {
    /// One event without a de-duplication key. Returns no row.
    pub one: Sql,
    /// Any events, in their order. The events with a de-duplication key that are not the first of
    /// it in the call must be left out. Returns each key, the id of its first event and whether that
    /// was stored just now.
    pub many: Sql,
}

impl EnqueueSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            one: sql(names, ONE),
            many: sql(names, MANY),
        }
    }
}

const ONE: &str = "INSERT INTO {events} (id, event_type, destination, key, payload, content_type,
    aggregate_type, aggregate_id, headers, dedup_key, max_attempts, available_at, expires_at,
    created_at, shape)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
    statement_timestamp() + COALESCE($12::bigint, 0) * interval '1 microsecond',
    statement_timestamp() + $13::bigint * interval '1 microsecond', statement_timestamp(),
    CASE WHEN $12 > 0 THEN CASE WHEN $4 IS NULL THEN 1 ELSE 4 END
         ELSE CASE WHEN $4 IS NULL THEN 0 ELSE 2 END END)";

const MANY: &str = "WITH input AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[],
        $7::text[], $8::text[], $9::text[], $10::text[], $11::integer[], $12::bigint[],
        $13::bigint[]) WITH ORDINALITY
    AS i(id, event_type, destination, key, payload, content_type, aggregate_type, aggregate_id,
         headers, dedup_key, max_attempts, delay, ttl, nth)
), first AS (
    INSERT INTO {dedup} AS d (dedup_key, id)
    SELECT dedup_key, id FROM input WHERE dedup_key IS NOT NULL ORDER BY dedup_key COLLATE \"C\"
    ON CONFLICT (dedup_key) DO UPDATE SET dedup_key = d.dedup_key
    RETURNING d.dedup_key, d.id, d.xmax = 0 AS new -- a row that was there has a locker
), stored AS (
    INSERT INTO {events} (id, event_type, destination, key, payload, content_type, aggregate_type,
        aggregate_id, headers, dedup_key, max_attempts, available_at, expires_at,
        created_at, shape)
    SELECT i.id, i.event_type, i.destination, i.key, i.payload, i.content_type, i.aggregate_type,
        i.aggregate_id, i.headers, i.dedup_key, i.max_attempts,
        statement_timestamp() + COALESCE(i.delay, 0) * interval '1 microsecond',
        statement_timestamp() + i.ttl * interval '1 microsecond', statement_timestamp(),
        CASE WHEN i.delay > 0 THEN CASE WHEN i.key IS NULL THEN 1 ELSE 4 END
             ELSE CASE WHEN i.key IS NULL THEN 0 ELSE 2 END END
    FROM input i LEFT JOIN first f ON f.dedup_key = i.dedup_key
    WHERE i.dedup_key IS NULL OR f.new
    ORDER BY i.nth
)
SELECT dedup_key, id, new FROM first";
