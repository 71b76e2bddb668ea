//! Ending, extending and giving back leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use outbox_core::sql::{Settling, answer, micros};
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Outcome, Settlement};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use sqlx::{PgConnection, Row};

use super::PgStore;
use super::error::classify;
use crate::query;

fn uuids(tokens: &[[u8; 16]]) -> Vec<Uuid> {
    tokens.iter().copied().map(Uuid::from_bytes).collect()
}

/// The one row of the statements that return the seqs they changed.
fn seqs(row: &PgRow) -> Result<Vec<i64>, sqlx::Error> {
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
        let changed = self
            .change(&mut conn, &columns)
            .await
            .map_err(|error| classify("settle", error))?;
        let given_back = batch.iter().any(|settlement| {
            !matches!(
                settlement.outcome,
                Outcome::Published | Outcome::Dead { .. }
            )
        });
        self.scan().settled(given_back);
        let leases = batch.iter().map(|settlement| settlement.lease);
        self.answer(&mut conn, "settle", leases, changed).await
    }

    async fn change(
        &self,
        conn: &mut PgConnection,
        columns: &Settling<'_>,
    ) -> Result<Vec<i64>, sqlx::Error> {
        let row = if let Some(token) = columns.all_published_under() {
            query(&self.sql.settle.published)
                .bind(&columns.seqs)
                .bind(Uuid::from_bytes(token))
                .fetch_one(conn)
                .await?
        } else {
            query(&self.sql.settle.mixed)
                .bind(&columns.seqs)
                .bind(uuids(&columns.tokens))
                .bind(&columns.kinds)
                .bind(&columns.after)
                .bind(&columns.notes)
                .bind(&columns.reasons)
                .fetch_one(conn)
                .await?
        };
        seqs(&row)
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
        let (all, tokens) = columns(leases.iter().copied());
        let row = query(&self.sql.settle.extend)
            .bind(all)
            .bind(tokens)
            .bind(micros(by))
            .fetch_one(&mut *conn)
            .await;
        let changed = row
            .and_then(|row| seqs(&row))
            .map_err(|error| classify("extend", error))?;
        self.answer(&mut conn, "extend", leases.iter().copied(), changed)
            .await
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
    async fn answer(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        leases: impl Iterator<Item = Lease> + Clone,
        changed: Vec<i64>,
    ) -> Result<Vec<LeaseStatus>, Error> {
        let ours: HashSet<i64> = changed.into_iter().collect();
        let (seqs, tokens) = columns(leases.clone().filter(|lease| !ours.contains(&lease.seq)));
        let mut held = HashMap::new();
        if !seqs.is_empty() {
            let rows = query(&self.sql.settle.held)
                .bind(seqs)
                .bind(tokens)
                .fetch_all(conn)
                .await
                .map_err(|error| classify(operation, error))?;
            for row in rows {
                let read = || Ok((row.try_get(0)?, row.try_get(1)?));
                let (seq, other) = read().map_err(|error| classify(operation, error))?;
                held.insert(seq, other);
            }
        }
        Ok(answer(leases, &ours, &held))
    }
}

fn columns(leases: impl Iterator<Item = Lease>) -> (Vec<i64>, Vec<Uuid>) {
    leases
        .map(|lease| (lease.seq, Uuid::from_bytes(*lease.token.as_bytes())))
        .unzip()
}
