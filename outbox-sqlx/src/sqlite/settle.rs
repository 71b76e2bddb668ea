//! Ending, extending and giving back leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use outbox_core::sql::{Settling, answer, hex, json, micros};
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Retention, Settlement};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Error as SqlxError, Row};

use super::SqliteStore;
use super::error::classify;
use crate::query;

impl SqliteStore {
    pub(super) async fn settle_once(
        &self,
        batch: &[Settlement],
    ) -> Result<Vec<LeaseStatus>, Error> {
        let failed = |error| classify("settle", error);
        let mut conn = self.pool.acquire().await.map_err(failed)?;
        let publish = match self.retention {
            Retention::DeleteAtOnce => 5,
            _ => 0,
        };
        let changed = query(&self.sql.settle.settle)
            .bind(Settling::new(batch).json())
            .bind(self.now_micros())
            .bind(publish)
            .fetch_all(&mut *conn)
            .await;
        let ours = changed
            .and_then(|rows| changed_leases(&rows))
            .map_err(failed)?;
        let leases = batch.iter().map(|settlement| settlement.lease);
        self.answer(&mut conn, leases, &ours, true)
            .await
            .map_err(failed)
    }

    pub(super) async fn extend_once(
        &self,
        leases: &[Lease],
        by: Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        let failed = |error| classify("extend", error);
        let mut conn = self.pool.acquire().await.map_err(failed)?;
        let rows: Vec<(i64, String)> = leases
            .iter()
            .map(|lease| (lease.seq, hex(lease.token.as_bytes())))
            .collect();
        let changed = query(&self.sql.settle.extend)
            .bind(json(&rows))
            .bind(self.now_micros().saturating_add(micros(by)))
            .fetch_all(&mut *conn)
            .await;
        let ours = changed
            .and_then(|rows| changed_leases(&rows))
            .map_err(failed)?;
        self.answer(&mut conn, leases.iter().copied(), &ours, false)
            .await
            .map_err(failed)
    }

    pub(super) async fn release_claim_once(&self, token: LeaseToken) -> Result<u64, Error> {
        query(&self.sql.settle.release_claim)
            .bind(&token.as_bytes()[..])
            .bind(self.now_micros())
            .execute(&self.pool)
            .await
            .map(|done| done.rows_affected())
            .map_err(|error| classify("release_claim", error))
    }

    /// Tells lost leases from ended ones; asks only where something was not changed.
    async fn answer(
        &self,
        conn: &mut SqliteConnection,
        leases: impl Iterator<Item = Lease> + Clone,
        ours: &HashSet<Lease>,
        ended: bool,
    ) -> Result<Vec<LeaseStatus>, SqlxError> {
        let missing: Vec<i64> = leases
            .clone()
            .filter(|lease| !ours.contains(lease))
            .map(|lease| lease.seq)
            .collect();
        let mut held = HashMap::new();
        if !missing.is_empty() {
            let rows = query(&self.sql.settle.held)
                .bind(json(&missing))
                .fetch_all(conn)
                .await?;
            for row in rows {
                held.insert(row.try_get(0)?, row.try_get(1)?);
            }
        }
        Ok(answer(leases, ours, ended, &held))
    }
}

fn changed_leases(rows: &[SqliteRow]) -> Result<HashSet<Lease>, SqlxError> {
    let lease = |row: &SqliteRow| {
        let token: &[u8] = row.try_get(1)?;
        let token = token
            .try_into()
            .map_err(|source| SqlxError::Decode(Box::new(source)))?;
        Ok(Lease::new(row.try_get(0)?, LeaseToken::from_bytes(token)))
    };
    rows.iter().map(lease).collect()
}
