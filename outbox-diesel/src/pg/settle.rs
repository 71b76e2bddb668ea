//! Ending, extending and giving back leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use diesel_async::AsyncPgConnection;
use outbox_core::sql::{Settling, answer, micros};
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Outcome, Settlement};

use super::value::{Id, Value, bigints};
use super::{PgStore, execute, row, rows};
use crate::read::{Columns, FromRow, Reader};

impl PgStore {
    pub(super) async fn settle_once(
        &self,
        batch: &[Settlement],
    ) -> Result<Vec<LeaseStatus>, Error> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.connection().await?;
        let changed = self.change(&mut conn, &Settling::new(batch)).await?;
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
        conn: &mut AsyncPgConnection,
        columns: &Settling<'_>,
    ) -> Result<Vec<i64>, Error> {
        let seqs = Value::BigInts(Some(&columns.seqs));
        let (sql, values) = if let Some(token) = columns.all_published_under() {
            let values = vec![seqs, Value::Uuid(Id(token))];
            (&self.sql.settle.published, values)
        } else {
            let notes = columns.notes.iter().map(Option::as_deref).collect();
            let values = vec![
                seqs,
                Value::Uuids(Some(columns.tokens.iter().copied().map(Id).collect())),
                Value::SmallInts(&columns.kinds),
                Value::BigInts(Some(&columns.after)),
                Value::Texts(Some(notes)),
                Value::Texts(Some(columns.reasons.clone())),
            ];
            (&self.sql.settle.mixed, values)
        };
        row(conn, "settle", sql, values)
            .await
            .map(|Seqs(changed)| changed)
    }

    pub(super) async fn extend_once(
        &self,
        leases: &[Lease],
        by: Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.connection().await?;
        let (seqs, tokens) = columns(leases.iter().copied());
        let values = vec![
            Value::BigInts(Some(&seqs)),
            Value::Uuids(Some(tokens)),
            Value::BigInt(Some(micros(by))),
        ];
        let Seqs(changed) = row(&mut conn, "extend", &self.sql.settle.extend, values).await?;
        self.answer(&mut conn, "extend", leases.iter().copied(), changed)
            .await
    }

    pub(super) async fn release_claim_once(&self, token: LeaseToken) -> Result<u64, Error> {
        let mut conn = self.connection().await?;
        let values = vec![
            Value::Uuid(Id(*token.as_bytes())),
            Value::BigInt(Some(i64::MIN)),
            Value::Text(Some("")),
            Value::BigInt(Some(i64::MIN)),
        ];
        let sql = &self.sql.settle.release_claim;
        let released = execute(&mut conn, "release_claim", sql, values).await?;
        self.scan().settled(true);
        Ok(released)
    }

    /// Tells lost leases from ended ones; asks only where something was not changed.
    async fn answer(
        &self,
        conn: &mut AsyncPgConnection,
        operation: &'static str,
        leases: impl Iterator<Item = Lease> + Clone + Send,
        changed: Vec<i64>,
    ) -> Result<Vec<LeaseStatus>, Error> {
        let ours: HashSet<i64> = changed.into_iter().collect();
        let (seqs, tokens) = columns(leases.clone().filter(|lease| !ours.contains(&lease.seq)));
        let mut held = HashMap::new();
        if !seqs.is_empty() {
            let values = vec![Value::BigInts(Some(&seqs)), Value::Uuids(Some(tokens))];
            let found: Vec<Held> = rows(conn, operation, &self.sql.settle.held, values).await?;
            held.extend(found.into_iter().map(|Held(seq, other)| (seq, other)));
        }
        Ok(answer(leases, &ours, &held))
    }
}

fn columns(leases: impl Iterator<Item = Lease>) -> (Vec<i64>, Vec<Id>) {
    leases
        .map(|lease| (lease.seq, Id(*lease.token.as_bytes())))
        .unzip()
}

/// The events that a statement changed.
struct Seqs(Vec<i64>);

impl FromRow<Pg> for Seqs {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        Ok(Self(row.maybe(bigints)?.unwrap_or_default()))
    }
}

/// An open event, and whether another token is on it.
struct Held(i64, bool);

impl FromRow<Pg> for Held {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        Ok(Self(row.get(Pg::bigint)?, row.get(Pg::boolean)?))
    }
}
