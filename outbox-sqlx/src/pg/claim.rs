//! Claiming: the statements of `outbox_core::sql::claim` on one connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_core::sql::{self, ClaimDriver, Notes, Step, Taken, micros};
use outbox_core::{
    Claim, ClaimRequest, Error, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore, Settlement,
    async_trait,
};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use super::PgStore;
use super::error::classify;
use super::row::{EVENT_COLUMNS, Stamp, column, event_row};
use super::session::{Session, Statement};
use crate::query;
use crate::retry::retried;

#[async_trait]
impl OutboxStore for PgStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let claim = retried!(self.claim_once(request));
        if claim.is_err() {
            self.scan().reset();
        }
        claim
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        retried!(self.settle_once(batch))
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        retried!(self.extend_once(leases, by))
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        let batch: Vec<Settlement> = sql::releases(leases);
        retried!(self.settle_once(&batch))
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        retried!(self.release_claim_once(token))
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        retried!(self.hold_once(destination, &hold))
    }
}

impl PgStore {
    async fn claim_once(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let mut driver = Driver {
            session: self.session("claim").await?,
            sql: Arc::clone(&self.sql),
        };
        let claim = sql::claim(&mut driver, &self.scan, request, Instant::now).await?;
        driver.session.end().await?;
        Ok(claim)
    }
}

struct Driver {
    session: Session,
    sql: Arc<outbox_core::sql::pg::Statements>,
}

#[async_trait]
impl ClaimDriver for Driver {
    async fn take(
        &mut self,
        request: &ClaimRequest,
        step: &Step,
        bytes: i64,
        first: bool,
    ) -> Result<Taken, Error> {
        let start = query(self.sql.claim.of(step))
            .bind(Uuid::from_bytes(*request.token.as_bytes()))
            .bind(micros(request.lease))
            .bind(bytes)
            .bind(first);
        let statement = match step {
            Step::Fresh { rows, seq, .. } => {
                let [_, _, except] = sql::filters(request);
                start.bind(seq).bind(except).bind(rows)
            }
            Step::FreshWindow { window, rows, seq } => {
                filtered(start.bind(seq), request).bind(rows).bind(window)
            }
            Step::DueWindow { window, rows } => filtered(start, request).bind(rows).bind(window),
            Step::Parked { rows, after } => filtered(start.bind(after), request).bind(rows),
            Step::Front {
                rows,
                stripes,
                together,
                careful,
            } => {
                let rows = i32::try_from(*rows).unwrap_or(i32::MAX);
                let start = filtered(start.bind(rows), request);
                start.bind(&stripes[..]).bind(together).bind(careful)
            }
            Step::Keyed {
                rows,
                after,
                stripes,
                careful,
            } => {
                let rows = i32::try_from(*rows).unwrap_or(i32::MAX);
                let start = start.bind(rows).bind(&after.0).bind(after.1);
                let start = filtered(start, request).bind(careful);
                start.bind(stripes.0).bind(stripes.1)
            }
        };
        let rows = self
            .session
            .fetch_all(statement)
            .await
            .map_err(|error| classify("claim", error))?;
        let mut taken = Taken::with_capacity(rows.len());
        for row in &rows {
            read(&mut taken, request, step, row)?;
        }
        Ok(taken)
    }

    async fn look(&mut self) -> Result<(Notes, i64), Error> {
        let row = self.session.fetch_one(query(&self.sql.claim.look)).await;
        row.and_then(|row| Ok((Notes::new(row.try_get(0)?), row.try_get(1)?)))
            .map_err(|error| classify("claim", error))
    }
}

fn filtered<'q>(statement: Statement<'q>, request: &'q ClaimRequest) -> Statement<'q> {
    let [types, only, except] = sql::filters(request);
    statement.bind(types).bind(only).bind(except)
}

/// A row that can't be read fails alone.
fn read(taken: &mut Taken, request: &ClaimRequest, step: &Step, row: &PgRow) -> Result<(), Error> {
    let all = || {
        let lease_until: Option<Stamp> = column(row, EVENT_COLUMNS)?;
        let extra: Option<i64> = column(row, EVENT_COLUMNS + 1)?;
        Ok((event_row(row)?, lease_until, extra))
    };
    match all() {
        Ok((event, lease_until, extra)) => {
            let lease_until = lease_until.map(|stamp| stamp.0);
            taken.row(request, step, event, lease_until, extra.unwrap_or(0));
        }
        Err(problem) => {
            let problem: sqlx::Error = problem;
            let seq = column(row, 0).map_err(|error| classify("claim", error))?;
            taken.unreadable(request.token, seq, problem.to_string());
        }
    }
    Ok(())
}
