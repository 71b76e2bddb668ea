//! Ending, extending and giving back leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use outbox_core::sql::{Settling, answer, at_places, micros, under};
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Settlement};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use sqlx::{PgConnection, Row};

use super::PgStore;
use super::error::classify;
use crate::query;

/// The one row of the statements that return the seqs or places they changed.
fn numbers(row: &PgRow) -> Result<Vec<i64>, sqlx::Error> {
    Ok(row.try_get::<Option<Vec<i64>>, _>(0)?.unwrap_or_default())
}

impl PgStore {
    pub(super) async fn settle_once(
        &self,
        batch: &[Settlement],
    ) -> Result<Vec<LeaseStatus>, Error> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.connection("settle").await?;
        let columns = Settling::new(batch);
        let ours = self
            .change(&mut conn, &columns)
            .await
            .map_err(|error| classify("settle", error))?;
        self.scan().settled(columns.gives_back());
        let leases = batch.iter().map(|settlement| settlement.lease);
        let held = self
            .held(&mut conn, "settle", leases.clone(), &ours)
            .await?;
        Ok(answer(leases, &ours, true, &held))
    }

    async fn change(
        &self,
        conn: &mut PgConnection,
        columns: &Settling<'_>,
    ) -> Result<HashSet<Lease>, sqlx::Error> {
        if let Some(token) = columns.all_published_under() {
            let row = query(&self.sql.settle.published)
                .bind(&columns.seqs)
                .bind(Uuid::from_bytes(token))
                .fetch_one(conn)
                .await?;
            return Ok(under(token, &numbers(&row)?));
        }
        let row = query(&self.sql.settle.mixed)
            .bind(&columns.seqs)
            .bind(uuids(&columns.leases))
            .bind(&columns.kinds)
            .bind(&columns.after)
            .bind(&columns.notes)
            .bind(&columns.reasons)
            .fetch_one(conn)
            .await?;
        Ok(at_places(&columns.leases, &numbers(&row)?))
    }

    pub(super) async fn extend_once(
        &self,
        leases: &[Lease],
        by: Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.connection("extend").await?;
        let row = query(&self.sql.settle.extend)
            .bind(seqs(leases))
            .bind(uuids(leases))
            .bind(micros(by))
            .fetch_one(&mut *conn)
            .await;
        let places = row
            .and_then(|row| numbers(&row))
            .map_err(|error| classify("extend", error))?;
        let ours = at_places(leases, &places);
        let all = leases.iter().copied();
        let held = self.held(&mut conn, "extend", all.clone(), &ours).await?;
        Ok(answer(all, &ours, false, &held))
    }

    pub(super) async fn release_claim_once(&self, token: LeaseToken) -> Result<u64, Error> {
        let done = query(&self.sql.settle.release_claim)
            .bind(Uuid::from_bytes(*token.as_bytes()))
            .bind(i64::MIN)
            .bind("")
            .bind(i64::MIN)
            .execute(&self.pool)
            .await
            .map_err(|error| classify("release_claim", error))?;
        self.scan().settled(true);
        Ok(done.rows_affected())
    }

    /// Tells lost leases from ended ones; asks only where something was not changed.
    async fn held(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        leases: impl Iterator<Item = Lease>,
        ours: &HashSet<Lease>,
    ) -> Result<HashMap<i64, bool>, Error> {
        let asked: Vec<i64> = leases
            .filter(|lease| !ours.contains(lease))
            .map(|lease| lease.seq)
            .collect();
        let mut held = HashMap::new();
        if asked.is_empty() {
            return Ok(held);
        }
        let rows = query(&self.sql.settle.held)
            .bind(asked)
            .fetch_all(conn)
            .await
            .map_err(|error| classify(operation, error))?;
        for row in rows {
            let read = || Ok((row.try_get(0)?, row.try_get(1)?));
            let (seq, token) = read().map_err(|error| classify(operation, error))?;
            held.insert(seq, token);
        }
        Ok(held)
    }
}

fn seqs(leases: &[Lease]) -> Vec<i64> {
    leases.iter().map(|lease| lease.seq).collect()
}

fn uuids(leases: &[Lease]) -> Vec<Uuid> {
    let tokens = leases.iter().map(|lease| *lease.token.as_bytes());
    tokens.map(Uuid::from_bytes).collect()
}
