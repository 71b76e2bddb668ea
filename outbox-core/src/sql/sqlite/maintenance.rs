//! Stats and prunes.

use std::time::Duration;

use super::{HELD, Statements, before, now, sql};
use crate::clock::{Clock, from_micros};
use crate::sql::session::only;
use crate::sql::stats::first_rows;
use crate::sql::{Cell, Session, Sql, TableNames, Value};
use crate::{Error, Prune, Pruned, Stats};

/// The statements of upkeep.
#[derive(Debug)]
pub(super) struct MaintenanceStatements {
    /// `?1` now · `?2` the most rows to look at. Returns, over the first `?2` open rows: their
    /// number, those under a lease, those due, those parked, and the instant since which the oldest
    /// due one is due; then the dead letters and the blocked keys, each up to `?2`.
    stats: Sql,
    /// `?1` published before this instant · `?2` rows.
    prune_published: Sql,
    /// `?1` dead before this instant · `?2` rows.
    prune_dead: Sql,
    /// `?1` discarded before this instant · `?2` rows.
    prune_discards: Sql,
    /// `?1` enqueued before this instant · `?2` rows: keys whose event is neither open nor dead.
    prune_dedup: Sql,
}

impl MaintenanceStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        let prune = |table: &str, at: &str| {
            let text = format!(
                "DELETE FROM {{~{table}}} WHERE seq IN ( \
                   SELECT seq FROM {{~{table}}} WHERE {at} <= ?1 ORDER BY {at}, seq LIMIT ?2)"
            );
            sql(names, &text)
        };
        Self {
            stats: sql(names, &stats_text()),
            prune_published: prune("published", "published_at"),
            prune_dead: prune("dead", "dead_at"),
            prune_discards: prune("discards", "discarded_at"),
            prune_dedup: sql(
                names,
                "DELETE FROM {~dedup} WHERE dedup_key IN ( \
                   SELECT dedup_key FROM {~dedup} k WHERE k.created_at <= ?1 \
                     AND NOT EXISTS (SELECT 1 FROM {~events} e WHERE e.id = k.id) \
                     AND NOT EXISTS (SELECT 1 FROM {~dead} d WHERE d.id = k.id) \
                   ORDER BY k.created_at LIMIT ?2)",
            ),
        }
    }
}

fn stats_text() -> String {
    format!(
        "WITH looked_at AS ( \
           SELECT e.*, e.lease_until > ?1 AS leased, \
             e.destination IN ({HELD}) AS closed, \
             e.\"key\" IS NULL OR (l.state <> 2 AND l.ready_at <= ?1 \
               AND max(coalesce(e.available_at, 0)) OVER (PARTITION BY e.destination, e.\"key\" \
                 ORDER BY e.seq) <= ?1) AS in_turn \
           FROM (SELECT seq, destination, \"key\", created_at, available_at, lease_until \
                 FROM {{~events}} ORDER BY seq LIMIT ?2) e \
           LEFT JOIN {{~lanes}} l ON l.destination = e.destination AND l.\"key\" = e.\"key\"), \
         sorted AS ( \
           SELECT coalesce(leased, 0) AS leased, \
             coalesce(leased, 0) = 0 AND closed AS parked, \
             coalesce(leased, 0) = 0 AND NOT closed AND in_turn \
               AND coalesce(available_at, 0) <= ?1 AS due, \
             coalesce(available_at, created_at) AS since \
           FROM looked_at) \
         SELECT count(*), coalesce(sum(leased), 0), coalesce(sum(due), 0), coalesce(sum(parked), 0), \
           min(CASE WHEN due THEN since END), \
           (SELECT count(*) FROM (SELECT 1 FROM {{~dead}} LIMIT ?2)), \
           (SELECT count(*) FROM (SELECT 1 FROM {{~blocked}} LIMIT ?2)) \
         FROM sorted"
    )
}

/// The state of the store.
///
/// # Errors
///
/// Those of the session.
pub async fn stats<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    count_limit: u32,
) -> Result<Stats, Error> {
    let values = [Value::Int(now(clock)), Value::Int(count_limit.into())];
    let row = session
        .fetch(&sql.maintenance.stats, &values, &[Cell::Int; 7])
        .await
        .and_then(only)?;
    let age = |since| {
        let age = clock.now().duration_since(from_micros(since));
        age.unwrap_or(Duration::ZERO)
    };
    Ok(first_rows(&row, count_limit, row.maybe(4).map(age)))
}

/// Deletes what is old, up to so many rows of each table, each in a statement of its own.
///
/// # Errors
///
/// Those of the session.
pub async fn prune<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    prune: &Prune,
) -> Result<Pruned, Error> {
    let sql = &sql.maintenance;
    let bounds = |age| {
        [
            Value::Int(before(clock, age)),
            Value::Int(prune.rows.into()),
        ]
    };
    let mut pruned = Pruned::default();
    if let Some(age) = prune.published_after {
        pruned.published = session.execute(&sql.prune_published, &bounds(age)).await?;
        session.execute(&sql.prune_discards, &bounds(age)).await?;
    }
    if let Some(age) = prune.dead_after {
        pruned.dead = session.execute(&sql.prune_dead, &bounds(age)).await?;
    }
    if let Some(age) = prune.dedup_after {
        pruned.dedup = session.execute(&sql.prune_dedup, &bounds(age)).await?;
    }
    Ok(pruned)
}
