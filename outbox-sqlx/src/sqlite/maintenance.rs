//! Stats and prunes, and the calls of a relay.

use std::time::Duration;

use outbox_core::clock::from_micros;
use outbox_core::{
    Claim, ClaimRequest, Count, Error, Hold, Lease, LeaseStatus, LeaseToken, Maintenance,
    OutboxStore, Outcome, Prune, Pruned, Settlement, Stats, async_trait,
};
use sqlx::{Error as SqlxError, Row};

use super::SqliteStore;
use super::error::classify;
use crate::query;

#[async_trait]
impl OutboxStore for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        self.claim_once(request).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.settle_once(batch).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        self.extend_once(leases, by).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        let release = |lease: &Lease| Settlement::new(*lease, Outcome::Release);
        let batch: Vec<Settlement> = leases.iter().map(release).collect();
        self.settle_once(&batch).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.release_claim_once(token).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.hold_once(destination, hold).await
    }
}

#[async_trait]
impl Maintenance for SqliteStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        self.stats_once(count_limit)
            .await
            .map_err(|error| classify("stats", error))
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        let sql = &self.sql.maintenance;
        let mut pruned = Pruned::default();
        if let Some(age) = prune.published_after {
            pruned.published = self.delete(&sql.prune_published, age, prune.rows).await?;
            self.delete(&sql.prune_discarded, age, prune.rows).await?;
        }
        if let Some(age) = prune.dead_after {
            pruned.dead = self.delete(&sql.prune_dead, age, prune.rows).await?;
        }
        if let Some(age) = prune.dedup_after {
            pruned.dedup = self.delete(&sql.prune_dedup, age, prune.rows).await?;
        }
        Ok(pruned)
    }
}

impl SqliteStore {
    async fn stats_once(&self, count_limit: u32) -> Result<Stats, SqlxError> {
        let row = query(&self.sql.maintenance.stats)
            .bind(self.now_micros())
            .bind(count_limit)
            .fetch_one(&self.pool)
            .await?;
        let limit = u64::from(count_limit);
        let number = |index: usize| row.try_get(index).map(i64::cast_unsigned);
        let open = Count::new(number(0)?, limit);
        // Of the rows that were looked at: where these were not all, there may be more of each kind.
        let part = |index: usize| {
            let mut count = Count::new(number(index)?, u64::MAX);
            count.capped = open.capped;
            Ok::<_, SqlxError>(count)
        };
        let since: Option<i64> = row.try_get(4)?;
        let mut stats = Stats::default();
        stats.pending = open;
        stats.claimed = part(1)?;
        stats.due = part(2)?;
        stats.parked = part(3)?;
        stats.oldest_due = since.map(|since| {
            let age = self.now().duration_since(from_micros(since));
            age.unwrap_or(Duration::ZERO)
        });
        stats.dead = Count::new(number(5)?, limit);
        stats.blocked_keys = Count::new(number(6)?, limit);
        Ok(stats)
    }

    async fn delete(
        &self,
        sql: &std::sync::Arc<str>,
        age: Duration,
        rows: u32,
    ) -> Result<u64, Error> {
        query(sql)
            .bind(self.ago(age))
            .bind(rows)
            .execute(&self.pool)
            .await
            .map(|done| done.rows_affected())
            .map_err(|error| classify("prune", error))
    }
}
