//! Statistics and pruning.

use std::time::Duration;

use outbox_core::sql::{Sql, micros};
use outbox_core::{Count, Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::value::Value;
use super::{PgStore, execute, retried, row};
use crate::rows::Counts;

#[async_trait]
impl Maintenance for PgStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        let mut conn = self.connection().await?;
        let values = vec![Value::BigInt(Some(count_limit.into()))];
        let found = row(&mut conn, "stats", &self.sql.maintenance.stats, values).await?;
        Ok(stats(&found, count_limit.into()))
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        let sql = &self.sql.maintenance;
        let mut pruned = Pruned::default();
        if let Some(after) = prune.published_after {
            pruned.published = retried!(self.delete(&sql.prune_published, after, prune.rows))?;
            retried!(self.delete(&sql.prune_discards, after, prune.rows))?;
        }
        if let Some(after) = prune.dead_after {
            pruned.dead =
                retried!(self.counted("prune", &sql.prune_dead, || bounds(after, prune.rows)))?;
        }
        if let Some(after) = prune.dedup_after {
            pruned.dedup = retried!(self.delete(&sql.prune_dedup, after, prune.rows))?;
        }
        Ok(pruned)
    }
}

impl PgStore {
    async fn delete(&self, sql: &Sql, after: Duration, rows: u32) -> Result<u64, Error> {
        let mut conn = self.connection().await?;
        execute(&mut conn, "prune", sql, bounds(after, rows)).await
    }
}

fn bounds(after: Duration, rows: u32) -> Vec<Value<'static>> {
    vec![
        Value::BigInt(Some(micros(after))),
        Value::BigInt(Some(rows.into())),
    ]
}

fn stats(found: &Counts, limit: u64) -> Stats {
    let age = |micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    let [pending, claimed, due, parked, dead, blocked] =
        found.counts.map(|rows| Count::new(rows, limit));
    let mut stats = Stats::default();
    stats.pending = pending;
    stats.claimed = claimed;
    stats.due = due;
    stats.parked = parked;
    stats.oldest_due = found.oldest.map(age);
    stats.dead = dead;
    stats.blocked_keys = blocked;
    stats
}
