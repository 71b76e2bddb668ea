//! Statistics and pruning. Each statement runs in autocommit mode.

use std::time::Duration;

use super::unblock::unblocking;
use super::{Statements, count, sql};
use crate::sql::session::only;
use crate::sql::stats::each_up_to;
use crate::sql::{Cell, Pruning, Session, Sql, TableNames, Value, micros};
use crate::{Error, Stats};

/// Statements of upkeep.
#[derive(Debug)]
pub(super) struct MaintenanceSql {
    /// `$1` where counts stop. One row: pending, claimed, due, parked, age of the oldest due row in
    /// µs or null, dead, blocked keys. Claimed, due and parked are counted among the first `$1` rows
    /// of each shape.
    stats: Sql,
    /// `$1` µs since the publication, `$2` most rows. One row: how many.
    prune_published: Sql,
    /// The records of discarded letters, as `prune_published`.
    prune_discards: Sql,
    /// As `prune_published`, since the death.
    prune_dead: Sql,
    /// As `prune_published`, since the enqueue.
    prune_dedup: Sql,
}

impl MaintenanceSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            stats: sql(names, "SELECT * FROM {stats_v1}($1)"),
            prune_published: sql(names, "SELECT * FROM {prune_published_v1}($1, $2)"),
            prune_discards: sql(names, "SELECT * FROM {prune_discards_v1}($1, $2)"),
            prune_dead: sql(names, "SELECT * FROM {prune_dead_v1}($1, $2)"),
            prune_dedup: sql(names, "SELECT * FROM {prune_dedup_v1}($1, $2)"),
        }
    }
}

pub(super) const STATS: &str = "WITH front AS MATERIALIZED (
    (SELECT shape, destination, key, available_at, lease_until FROM {events}
     WHERE shape = 0 ORDER BY seq LIMIT $1)
    UNION ALL
    (SELECT shape, destination, key, available_at, lease_until FROM {events}
     WHERE shape = 1 ORDER BY available_at, seq LIMIT $1)
    UNION ALL
    (SELECT shape, destination, key, available_at, lease_until FROM {events}
     WHERE shape = 3 ORDER BY destination, seq LIMIT $1)
), keyed AS MATERIALIZED (
    -- A key's rows are due from its head to its first row that is not, if none is under a lease.
    SELECT destination, available_at, leased,
        NOT bool_or(leased) OVER (PARTITION BY destination, khash)
        AND bool_and(available_at <= now()) OVER (
            PARTITION BY destination, khash ORDER BY seq)
        AND NOT EXISTS (SELECT FROM {blocked} b
            WHERE b.destination = k.destination AND b.key = k.key) AS ready
    FROM (
        SELECT destination, khash, key, seq, available_at,
            COALESCE(lease_until > now(), false) AS leased
        FROM {events} WHERE key IS NOT NULL
        ORDER BY khash >> 60, destination, khash, seq LIMIT $1
    ) k
), state AS (
    SELECT destination, available_at, COALESCE(lease_until > now(), false) AS leased,
        available_at <= now() AS ready
    FROM front
    UNION ALL
    SELECT destination, available_at, leased, ready FROM keyed
), held AS MATERIALIZED (
    SELECT destination FROM {destinations} WHERE hold_until > now()
), counted AS (
    SELECT count(*) FILTER (WHERE s.leased) AS claimed,
        count(*) FILTER (WHERE s.ready AND NOT s.leased AND h.destination IS NULL) AS due,
        count(*) FILTER (WHERE NOT s.leased AND h.destination IS NOT NULL) AS parked,
        min(s.available_at) FILTER (
            WHERE s.ready AND NOT s.leased AND h.destination IS NULL) AS oldest
    FROM state s LEFT JOIN held h USING (destination)
)
SELECT (SELECT count(*) FROM (SELECT FROM {events} LIMIT $1) p),
    claimed, due, parked,
    (extract(epoch FROM now() - oldest) * 1000000)::bigint,
    (SELECT count(*) FROM (SELECT FROM {dead} LIMIT $1) d),
    (SELECT count(*) FROM (SELECT FROM {blocked} LIMIT $1) b)
FROM counted";

pub(super) const PRUNE_PUBLISHED: &str = "WITH gone AS (
    DELETE FROM {published}
    WHERE seq = ANY (ARRAY(
        SELECT seq FROM {published}
        WHERE published_at <= now() - $1 * interval '1 microsecond'
        ORDER BY published_at, seq
        LIMIT $2
        FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) FROM gone";

pub(super) const PRUNE_DISCARDS: &str = "WITH gone AS (
    DELETE FROM {discards}
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {discards}
        WHERE discarded_at <= now() - $1 * interval '1 microsecond'
        ORDER BY discarded_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) FROM gone";

pub(super) fn prune_dead() -> String {
    unblocking(PRUNE_DEAD, "gone")
}

const PRUNE_DEAD: &str = "picked AS MATERIALIZED (
    SELECT seq FROM {dead}
    WHERE dead_at <= now() - $1 * interval '1 microsecond'
    ORDER BY dead_at, seq
    LIMIT $2
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {dead} d WHERE d.seq = ANY (ARRAY(SELECT seq FROM picked))
    RETURNING d.destination, d.key
)";

pub(super) const PRUNE_DEDUP: &str = "WITH gone AS (
    DELETE FROM {dedup}
    WHERE dedup_key = ANY (ARRAY(
        SELECT k.dedup_key FROM {dedup} k
        WHERE k.created_at <= now() - $1 * interval '1 microsecond'
          AND (SELECT 1 FROM {events} e WHERE e.id = k.id) IS NULL
          AND (SELECT 1 FROM {dead} d WHERE d.id = k.id LIMIT 1) IS NULL
        ORDER BY k.created_at
        LIMIT $2
        FOR UPDATE OF k SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) FROM gone";

/// The state of the store.
///
/// # Errors
///
/// Those of the session.
pub async fn stats<S: Session>(
    session: &mut S,
    sql: &Statements,
    count_limit: u32,
) -> Result<Stats, Error> {
    let values = [Value::Int(count_limit.into())];
    let row = session
        .fetch(&sql.maintenance.stats, &values, &[Cell::Int; 7])
        .await
        .and_then(only)?;
    Ok(each_up_to(&row, count_limit))
}

/// Deletes up to `rows` rows of this age from a table, and returns how many.
///
/// # Errors
///
/// Those of the session.
pub async fn prune<S: Session>(
    session: &mut S,
    sql: &Statements,
    table: Pruning,
    age: Duration,
    rows: u32,
) -> Result<u64, Error> {
    let values = [Value::Int(micros(age)), Value::Int(rows.into())];
    let sql = &sql.maintenance;
    match table {
        Pruning::Published => {
            let pruned = count(session, &sql.prune_published, &values).await?;
            count(session, &sql.prune_discards, &values).await?;
            Ok(pruned)
        }
        Pruning::Dead => count(session, &sql.prune_dead, &values).await,
        Pruning::Dedup => count(session, &sql.prune_dedup, &values).await,
    }
}
