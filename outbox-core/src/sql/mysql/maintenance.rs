//! Stats and prunes. Each prune of a table is a transaction of its own.

use std::time::Duration;

use super::claiming::numbers;
use super::dead_letters::remove;
use super::{Cell, Session, Statements, Value, sql};
use crate::sql::session::only;
use crate::sql::stats::{age, first_rows};
use crate::sql::{Pruning, Sql, TableNames, json, micros};
use crate::{Error, Stats};

#[derive(Debug)]
pub(super) struct MaintenanceSql {
    /// Over the first rows: their number, those under a lease, due, parked, µs since the oldest due
    /// one is due; then dead letters and blocked keys. Rows three times.
    stats: Sql,
    /// `seq`. µs, rows.
    pick_published: Sql,
    /// Seqs.
    remove_published: Sql,
    /// `seq`. µs, rows.
    pick_discards: Sql,
    /// Seqs.
    remove_discards: Sql,
    /// `seq`. µs, rows.
    pick_dead: Sql,
    /// Keys in hex. µs, rows.
    pick_dedup: Sql,
    /// Locks keys: in hex. Keys.
    lock_dedup: Sql,
    /// Keys.
    prune_dedup: Sql,
}

impl MaintenanceSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let keys = "JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) j \
                    STRAIGHT_JOIN {dedup} k FORCE INDEX (PRIMARY) ON k.dedup_key = UNHEX(j.k)";
        let pick = |table: &str, at: &str| {
            let text = format!(
                "SELECT seq FROM {{{table}}} WHERE {at} <= :now - ? ORDER BY {at}, seq LIMIT ?"
            );
            sql(names, &text)
        };
        let remove = |table: &str| {
            let text = format!(
                "DELETE e FROM :seqs STRAIGHT_JOIN {{{table}}} e FORCE INDEX (PRIMARY) \
                 ON e.seq = j.n"
            );
            sql(names, &text)
        };
        Self {
            stats: sql(names, STATS),
            pick_published: pick("published", "published_at"),
            remove_published: remove("published"),
            pick_discards: pick("discards", "discarded_at"),
            remove_discards: remove("discards"),
            pick_dead: pick("dead", "dead_at"),
            pick_dedup: sql(
                names,
                "SELECT HEX(k.dedup_key) FROM {dedup} k WHERE k.created_at <= :now - ? \
                   AND NOT EXISTS (SELECT 1 FROM {events} e WHERE e.id = k.id) \
                   AND NOT EXISTS (SELECT 1 FROM {dead} d WHERE d.id = k.id) \
                 ORDER BY k.created_at LIMIT ?",
            ),
            lock_dedup: sql(
                names,
                &format!("SELECT HEX(k.dedup_key) FROM {keys} :lock(k) SKIP LOCKED"),
            ),
            prune_dedup: sql(names, &format!("DELETE k FROM {keys}")),
        }
    }
}

/// Sums stand in a list of their own: beside other expressions, MariaDB refuses them under
/// `ONLY_FULL_GROUP_BY` from the second execution of a prepared statement on.
const STATS: &str = "WITH looked_at AS ( \
      SELECT seq, destination, `key`, place, shape IN (2, 4) AS keyed, available_at, \
        COALESCE(lease_until > :now, 0) AS leased \
      FROM {events} ORDER BY seq LIMIT ?), \
    turns AS ( \
      SELECT l.*, \
        EXISTS (SELECT 1 FROM {destinations} d WHERE d.destination = l.destination \
                AND (d.disabled = 1 OR d.hold_until > :now)) AS closed, \
        keyed = 0 OR ( \
          MAX(leased) OVER (PARTITION BY keyed, place) = 0 \
          AND MAX(available_at) OVER (PARTITION BY keyed, place ORDER BY seq) <= :now \
          AND NOT EXISTS (SELECT 1 FROM {blocked} b \
            WHERE b.destination = l.destination AND b.`key` = l.`key`)) AS in_turn \
      FROM looked_at l), \
    state AS ( \
      SELECT leased, leased = 0 AND closed AS parked, available_at, \
        leased = 0 AND NOT closed AND in_turn AND available_at <= :now AS due \
      FROM turns), \
    summed AS ( \
      SELECT COUNT(*) AS pending, CAST(COALESCE(SUM(leased), 0) AS SIGNED) AS leased, \
        CAST(COALESCE(SUM(due), 0) AS SIGNED) AS due, \
        CAST(COALESCE(SUM(parked), 0) AS SIGNED) AS parked, \
        MIN(IF(due, available_at, NULL)) AS oldest \
      FROM state) \
    SELECT pending, leased, due, parked, :now - oldest, \
      (SELECT COUNT(*) FROM (SELECT 1 FROM {dead} LIMIT ?) d), \
      (SELECT COUNT(*) FROM (SELECT 1 FROM {blocked} LIMIT ?) b) \
    FROM summed";

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
    let rows = [Value::Int(count_limit.into()); 3];
    let row = session
        .fetch(&sql.maintenance.stats, &rows, &[Cell::Int; 7])
        .await
        .and_then(only)?;
    Ok(first_rows(&row, count_limit, row.maybe(4).map(age)))
}

/// Deletes up to `rows` rows of this age from a table, and returns how many; in a transaction.
///
/// # Errors
///
/// Those of the session; nothing is deleted where the transaction is not committed.
pub async fn prune<S: Session>(
    session: &mut S,
    sql: &Statements,
    table: Pruning,
    age: Duration,
    rows: u32,
) -> Result<u64, Error> {
    let values = [Value::Int(micros(age)), Value::Int(rows.into())];
    let sql_of = &sql.maintenance;
    match table {
        Pruning::Published => {
            let seqs = json(&numbers(session, &sql_of.pick_published, &values).await?);
            let seqs = [Value::Text(&seqs)];
            let pruned = session.execute(&sql_of.remove_published, &seqs).await?;
            let seqs = json(&numbers(session, &sql_of.pick_discards, &values).await?);
            let seqs = [Value::Text(&seqs)];
            session.execute(&sql_of.remove_discards, &seqs).await?;
            Ok(pruned)
        }
        Pruning::Dead => {
            let seqs = numbers(session, &sql_of.pick_dead, &values).await?;
            remove(session, sql, &seqs).await
        }
        Pruning::Dedup => {
            let picked = keys(session, &sql_of.pick_dedup, &values).await?;
            let locked = keys(session, &sql_of.lock_dedup, &[Value::Text(&picked)]).await?;
            let locked = [Value::Text(&locked)];
            session.execute(&sql_of.prune_dedup, &locked).await
        }
    }
}

/// Keys in hex, as a JSON array.
async fn keys<S: Session>(
    session: &mut S,
    sql: &Sql,
    values: &[Value<'_>],
) -> Result<String, Error> {
    let rows = session.fetch(sql, values, &[Cell::Bytes]).await?;
    let keys: Vec<String> = rows.iter().filter_map(|row| row.text(0)).collect();
    Ok(json(&keys))
}
