//! Statistics and pruning.

use std::time::Duration;

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use outbox_core::sql::{Sql, micros};
use outbox_core::{Count, Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::value::Value;
use super::{PgStore, execute, retried, row};
use crate::read::{Columns, FromRow, Reader};

#[async_trait]
impl Maintenance for PgStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        let mut conn = self.connection().await?;
        let values = vec![Value::BigInt(Some(count_limit.into()))];
        let counted: Counts = row(&mut conn, "stats", &self.sql.maintenance.stats, values).await?;
        Ok(counted.stats(count_limit.into()))
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

/// The columns of the statistics, the age of the oldest due event apart.
struct Counts {
    counts: [i64; 6],
    oldest: Option<i64>,
}

impl Counts {
    fn stats(&self, limit: u64) -> Stats {
        let [pending, claimed, due, parked, dead, blocked] = self
            .counts
            .map(|rows| Count::new(u64::try_from(rows).unwrap_or(0), limit));
        let age = |micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        let mut stats = Stats::default();
        stats.pending = pending;
        stats.claimed = claimed;
        stats.due = due;
        stats.parked = parked;
        stats.oldest_due = self.oldest.map(age);
        stats.dead = dead;
        stats.blocked_keys = blocked;
        stats
    }
}

impl FromRow<Pg> for Counts {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        let mut counts = [0; 6];
        for count in &mut counts[..4] {
            *count = row.get(Pg::bigint)?;
        }
        let oldest = row.maybe(Pg::bigint)?;
        for count in &mut counts[4..] {
            *count = row.get(Pg::bigint)?;
        }
        Ok(Self { counts, oldest })
    }
}
