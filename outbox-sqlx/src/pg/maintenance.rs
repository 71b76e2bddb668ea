//! Statistics and pruning.

use std::time::Duration;

use outbox_core::sql::{Sql, micros, stats};
use outbox_core::{Error, Maintenance, Prune, Pruned, Stats, async_trait};
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
        read_stats(&row, count_limit).map_err(|error| classify("stats", error))
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

fn read_stats(row: &PgRow, limit: u32) -> Result<Stats, sqlx::Error> {
    let mut counts = [0; 6];
    for (count, place) in counts.iter_mut().zip([0, 1, 2, 3, 5, 6]) {
        *count = row.try_get(place)?;
    }
    Ok(stats(counts, limit, row.try_get(4)?))
}
