//! Claiming: the statements of `outbox_core::sql::claim` on one connection.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use diesel_async::AsyncPgConnection;
use outbox_core::sql::pg::Statements;
use outbox_core::sql::{self, ClaimDriver, EventRow, Notes, Step, Taken, micros};
use outbox_core::{
    Claim, ClaimRequest, Error, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore, Settlement,
    async_trait,
};

use super::value::{Id, Value};
use super::{PgStore, retried, row, rows};
use crate::pool::Loan;
use crate::read::{Columns, FromRow, Reader};

#[async_trait]
impl OutboxStore for PgStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        retried!(self.claim_once(request))
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        retried!(self.settle_once(batch))
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        retried!(self.extend_once(leases, by))
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        let batch = sql::releases(leases);
        retried!(self.settle_once(&batch))
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        retried!(self.release_claim_once(token))
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.hold_one(destination, hold).await
    }
}

impl PgStore {
    async fn claim_once(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let conn = self.connection().await;
        let mut driver = Driver {
            conn: conn.inspect_err(|_| self.scan().reset())?,
            sql: Arc::clone(&self.sql),
        };
        sql::claim(&mut driver, &self.scan, request, Instant::now).await
    }
}

struct Driver {
    conn: Loan<AsyncPgConnection>,
    sql: Arc<Statements>,
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
        let mut values = vec![
            Value::Uuid(Id(*request.token.as_bytes())),
            Value::BigInt(Some(micros(request.lease))),
            Value::BigInt(Some(bytes)),
            Value::Bool(first),
        ];
        match step {
            Step::Fresh { seq, .. } | Step::FreshWindow { seq, .. } => {
                values.push(Value::BigInt(Some(*seq)));
            }
            Step::DueWindow { .. } => {}
            Step::Parked { after, .. } => values.push(Value::Text(Some(after))),
            Step::Front { rows, .. } => {
                let rows = i32::try_from(*rows).unwrap_or(i32::MAX);
                values.push(Value::Integer(Some(rows)));
            }
            Step::Keyed { rows, after, .. } => {
                let rows = i32::try_from(*rows).unwrap_or(i32::MAX);
                values.push(Value::Integer(Some(rows)));
                values.push(Value::Text(Some(&after.0)));
                values.push(Value::BigInt(Some(after.1)));
            }
        }
        let [types, only, except] = sql::filters(request).map(texts);
        if !matches!(step, Step::Fresh { .. }) {
            values.extend([types, only]);
        }
        values.push(except);
        match step {
            Step::Fresh { rows, .. } | Step::Parked { rows, .. } => {
                values.push(Value::BigInt(Some(*rows)));
            }
            Step::FreshWindow { rows, window, .. } | Step::DueWindow { rows, window } => {
                values.push(Value::BigInt(Some(*rows)));
                values.push(Value::BigInt(Some(*window)));
            }
            Step::Front {
                stripes,
                together,
                careful,
                ..
            } => {
                values.push(Value::BigInts(Some(stripes)));
                values.extend([Value::Bool(*together), Value::Bool(*careful)]);
            }
            Step::Keyed {
                stripes, careful, ..
            } => {
                values.push(Value::Bool(*careful));
                values.push(Value::BigInt(Some(stripes.0)));
                values.push(Value::BigInt(Some(stripes.1)));
            }
        }
        let text = self.sql.claim.of(step);
        let found: Vec<Found> = rows(&mut self.conn, "claim", text, values).await?;
        let mut taken = Taken::with_capacity(found.len());
        for row in found {
            match row.0 {
                Ok((event, lease_until, extra)) => {
                    taken.row(request, step, event, lease_until, extra);
                }
                Err((seq, problem)) => taken.unreadable(request.token, seq, problem),
            }
        }
        Ok(taken)
    }

    async fn look(&mut self) -> Result<(Notes, i64), Error> {
        let Look(notes, last) =
            row(&mut self.conn, "claim", &self.sql.claim.look, Vec::new()).await?;
        Ok((Notes::new(notes), last))
    }
}

fn texts(list: Option<&[String]>) -> Value<'_> {
    Value::Texts(list.map(|all| all.iter().map(|one| Some(&**one)).collect()))
}

/// A row that a claim returned. One that can't be read fails alone.
struct Found(Result<(EventRow, Option<SystemTime>, i64), (i64, String)>);

impl FromRow<Pg> for Found {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        let mut all = || {
            let event = EventRow::from_row(row)?;
            let lease_until = row.maybe(Pg::instant)?;
            let extra = row.maybe(Pg::bigint)?.unwrap_or(0);
            deserialize::Result::Ok(Self(Ok((event, lease_until, extra))))
        };
        all().or_else(|problem| {
            let seq = row.rewound().get(Pg::bigint)?;
            Ok(Self(Err((seq, problem.to_string()))))
        })
    }
}

struct Look(i64, i64);

impl FromRow<Pg> for Look {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        Ok(Self(row.get(Pg::bigint)?, row.get(Pg::bigint)?))
    }
}
