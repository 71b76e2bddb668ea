//! Stats and prunes.

use std::time::{Duration, SystemTime};

use diesel::{QueryResult, SqliteConnection};
use outbox_core::clock::from_micros;
use outbox_core::sql::Sql;
use outbox_core::{Count, Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::value::Value;
use super::{SqliteStore, execute, row};
use crate::rows::Counts;

#[async_trait]
impl Maintenance for SqliteStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        let found = self
            .on_pool("stats", move |store, conn| {
                let values = vec![
                    Value::number(store.now_micros()),
                    Value::number(count_limit),
                ];
                row(conn, &store.sql.maintenance.stats, values)
            })
            .await?;
        Ok(stats(&found, count_limit.into(), self.now()))
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        let prune = prune.clone();
        self.on_pool("prune", move |store, conn| store.prune_on(conn, &prune))
            .await
    }
}

impl SqliteStore {
    fn prune_on(&self, conn: &mut SqliteConnection, prune: &Prune) -> QueryResult<Pruned> {
        let sql = &self.sql.maintenance;
        let mut delete = |sql: &Sql, age: Duration| {
            let values = vec![Value::number(self.ago(age)), Value::number(prune.rows)];
            execute(conn, sql, values)
        };
        let mut pruned = Pruned::default();
        if let Some(age) = prune.published_after {
            pruned.published = delete(&sql.prune_published, age)?;
            delete(&sql.prune_discarded, age)?;
        }
        if let Some(age) = prune.dead_after {
            pruned.dead = delete(&sql.prune_dead, age)?;
        }
        if let Some(age) = prune.dedup_after {
            pruned.dedup = delete(&sql.prune_dedup, age)?;
        }
        Ok(pruned)
    }
}

fn stats(found: &Counts, limit: u64, now: SystemTime) -> Stats {
    let [pending, claimed, due, parked, dead, blocked] = found.counts;
    let open = Count::new(pending, limit);
    // Of the rows that were looked at: where these were not all, there may be more of each kind.
    let part = |rows| {
        let mut count = Count::new(rows, u64::MAX);
        count.capped = open.capped;
        count
    };
    let age = |since| {
        let age = now.duration_since(from_micros(since));
        age.unwrap_or(Duration::ZERO)
    };
    let mut stats = Stats::default();
    stats.pending = open;
    stats.claimed = part(claimed);
    stats.due = part(due);
    stats.parked = part(parked);
    stats.oldest_due = found.oldest.map(age);
    stats.dead = Count::new(dead, limit);
    stats.blocked_keys = Count::new(blocked, limit);
    stats
}
