//! Ending, extending and giving back leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use outbox_core::sql::{Settling, answer, at_places, micros};
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Settlement};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::PgStore;
use super::error::classify;
use super::session::Session;
use crate::query;

/// The one row of the statements that return numbers.
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
        let mut session = self.session("settle").await?;
        let columns = Settling::new(batch);
        let told = self
            .change(&mut session, &columns)
            .await
            .map_err(|error| classify("settle", error))?;
        self.scan().settled(columns.gives_back());
        if columns.all_changed(&told, batch.len()) {
            session.end().await?;
            return Ok(vec![LeaseStatus::Ours; batch.len()]);
        }
        let ours = columns.changed(&told);
        let leases = batch.iter().map(|settlement| settlement.lease);
        let held = self
            .held(&mut session, "settle", leases.clone(), &ours)
            .await?;
        session.end().await?;
        Ok(answer(leases, &ours, true, &held))
    }

    /// What the statement told, for [`Settling::changed`].
    async fn change(
        &self,
        session: &mut Session,
        columns: &Settling<'_>,
    ) -> Result<Vec<i64>, sqlx::Error> {
        let published = columns.all_published();
        let sql = if published {
            &self.sql.settle.published
        } else {
            &self.sql.settle.mixed
        };
        let mut statement = query(sql).bind(&columns.seqs);
        if published {
            statement = statement.bind(uuids(columns.tokens()));
        } else {
            statement = statement
                .bind(uuids(&columns.leases))
                .bind(&columns.kinds)
                .bind(&columns.after)
                .bind(&columns.notes)
                .bind(&columns.reasons);
        }
        numbers(&session.fetch_one(statement).await?)
    }

    pub(super) async fn extend_once(
        &self,
        leases: &[Lease],
        by: Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let mut session = self.session("extend").await?;
        let extend = query(&self.sql.settle.extend)
            .bind(seqs(leases))
            .bind(uuids(leases))
            .bind(micros(by));
        let row = session.fetch_one(extend).await;
        let places = row
            .and_then(|row| numbers(&row))
            .map_err(|error| classify("extend", error))?;
        let ours = at_places(leases, &places);
        let all = leases.iter().copied();
        let held = self
            .held(&mut session, "extend", all.clone(), &ours)
            .await?;
        session.end().await?;
        Ok(answer(all, &ours, false, &held))
    }

    pub(super) async fn release_claim_once(&self, token: LeaseToken) -> Result<u64, Error> {
        let (destination, khash) = self.scan().walk_of(token);
        let release = query(&self.sql.settle.release_claim)
            .bind(Uuid::from_bytes(*token.as_bytes()))
            .bind(destination)
            .bind(khash);
        let released = self.changed("release_claim", release).await?;
        self.scan().settled(true);
        Ok(released)
    }

    /// Tells lost leases from ended ones; asks only where something was not changed.
    async fn held(
        &self,
        session: &mut Session,
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
        let rows = session
            .fetch_all(query(&self.sql.settle.held).bind(asked))
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
