//! Statistics and pruning.

use std::time::Duration;

use outbox_core::sql::{Sql, micros};
use outbox_core::{Count, Error, Maintenance, Prune, Pruned, Stats, async_trait};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::PgStore;
use super::error::classify;
use crate::query;
use crate::retry::retried;

#[async_trait]
impl Maintenance for PgStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        let stats_of = query(&self.sql.maintenance.stats).bind(i64::from(count_limit));
        let row = self.fetch_one("stats", stats_of).await?;
        stats(&row, u64::from(count_limit)).map_err(|error| classify("stats", error))
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        let sql = &self.sql.maintenance;
        let mut pruned = Pruned::default();
        if let Some(after) = prune.published_after {
            pruned.published = self.delete(&sql.prune_published, after, prune.rows).await?;
            self.delete(&sql.prune_discards, after, prune.rows).await?;
        }
        if let Some(after) = prune.dead_after {
            pruned.dead = retried!(
                self.counted(
                    "prune",
                    query(&sql.prune_dead)
                        .bind(micros(after))
                        .bind(i64::from(prune.rows))
                )
            )?;
        }
        if let Some(after) = prune.dedup_after {
            pruned.dedup = self.delete(&sql.prune_dedup, after, prune.rows).await?;
        }
        Ok(pruned)
    }
}

impl PgStore {
    async fn delete(&self, sql: &Sql, after: Duration, rows: u32) -> Result<u64, Error> {
        let delete = || query(sql).bind(micros(after)).bind(i64::from(rows));
        retried!(self.changed("prune", delete()))
    }
}

fn stats(row: &PgRow, limit: u64) -> Result<Stats, sqlx::Error> {
    let count = |index: usize| {
        let rows: i64 = row.try_get(index)?;
        Ok::<_, sqlx::Error>(Count::new(u64::try_from(rows).unwrap_or(0), limit))
    };
    let oldest: Option<i64> = row.try_get(4)?;
    let mut stats = Stats::default();
    stats.pending = count(0)?;
    stats.claimed = count(1)?;
    stats.due = count(2)?;
    stats.parked = count(3)?;
    stats.oldest_due = oldest.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or(0)));
    stats.dead = count(5)?;
    stats.blocked_keys = count(6)?;
    Ok(stats)
}
