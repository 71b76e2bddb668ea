//! Statistics and pruning.

use std::time::Duration;

use outbox_core::sql::{Sql, micros, stats};
use outbox_core::{Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::value::Value;
use super::{PgStore, execute, retried, row};
use crate::rows::Counts;

#[async_trait]
impl Maintenance for PgStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        let mut conn = self.connection().await?;
        let values = vec![Value::BigInt(Some(count_limit.into()))];
        let sql = &self.sql.maintenance.stats;
        let Counts { counts, oldest } = row(&mut conn, "stats", sql, values).await?;
        Ok(stats(counts, count_limit, oldest))
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
