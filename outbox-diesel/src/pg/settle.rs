//! Ending, extending and giving back leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use diesel_async::AsyncPgConnection;
use outbox_core::sql::{Settling, answer, at_places, micros};
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Settlement};

use super::value::{Id, Value, bigints};
use super::{PgStore, execute, row, rows};
use crate::read::{FromRow, Reader};
use crate::rows::Held;

impl PgStore {
    pub(super) async fn settle_once(
        &self,
        batch: &[Settlement],
    ) -> Result<Vec<LeaseStatus>, Error> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.connection().await?;
        let columns = Settling::new(batch);
        let told = self.change(&mut conn, &columns).await?;
        self.scan().settled(columns.gives_back());
        if columns.all_changed(&told, batch.len()) {
            return Ok(vec![LeaseStatus::Ours; batch.len()]);
        }
        let ours = columns.changed(&told);
        let leases = batch.iter().map(|settlement| settlement.lease);
        let held = self
            .held(&mut conn, "settle", leases.clone(), &ours)
            .await?;
        Ok(answer(leases, &ours, true, &held))
    }

    /// What the statement told, for [`Settling::changed`].
    async fn change(
        &self,
        conn: &mut AsyncPgConnection,
        columns: &Settling<'_>,
    ) -> Result<Vec<i64>, Error> {
        let mut values = vec![Value::BigInts(Some(&columns.seqs))];
        let mut sql = &self.sql.settle.published;
        if columns.all_published() {
            values.push(Value::Uuids(Some(tokens(columns.tokens()))));
        } else {
            sql = &self.sql.settle.mixed;
            let notes = columns.notes.iter().map(Option::as_deref).collect();
            values.extend([
                Value::Uuids(Some(tokens(&columns.leases))),
                Value::SmallInts(&columns.kinds),
                Value::BigInts(Some(&columns.after)),
                Value::Texts(Some(notes)),
                Value::Texts(Some(columns.reasons.clone())),
            ]);
        }
        let Numbers(told) = row(conn, "settle", sql, values).await?;
        Ok(told)
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
        let seqs: Vec<i64> = leases.iter().map(|lease| lease.seq).collect();
        let values = vec![
            Value::BigInts(Some(&seqs)),
            Value::Uuids(Some(tokens(leases))),
            Value::BigInt(Some(micros(by))),
        ];
        let Numbers(places) = row(&mut conn, "extend", &self.sql.settle.extend, values).await?;
        let ours = at_places(leases, &places);
        let all = leases.iter().copied();
        let held = self.held(&mut conn, "extend", all.clone(), &ours).await?;
        Ok(answer(all, &ours, false, &held))
    }

    pub(super) async fn release_claim_once(&self, token: LeaseToken) -> Result<u64, Error> {
        let mut conn = self.connection().await?;
        let (destination, khash) = self.scan().walk_of(token);
        let values = vec![
            Value::Uuid(Id(*token.as_bytes())),
            Value::Text(Some(&destination)),
            Value::BigInt(Some(khash)),
        ];
        let sql = &self.sql.settle.release_claim;
        let released = execute(&mut conn, "release_claim", sql, values).await?;
        self.scan().settled(true);
        Ok(released)
    }

    /// Tells lost leases from ended ones; asks only where something was not changed.
    async fn held(
        &self,
        conn: &mut AsyncPgConnection,
        operation: &'static str,
        leases: impl Iterator<Item = Lease> + Send,
        ours: &HashSet<Lease>,
    ) -> Result<HashMap<i64, bool>, Error> {
        let asked: Vec<i64> = leases
            .filter(|lease| !ours.contains(lease))
            .map(|lease| lease.seq)
            .collect();
        if asked.is_empty() {
            return Ok(HashMap::new());
        }
        let values = vec![Value::BigInts(Some(&asked))];
        let found: Vec<Held> = rows(conn, operation, &self.sql.settle.held, values).await?;
        Ok(found
            .into_iter()
            .map(|Held(seq, token)| (seq, token))
            .collect())
    }
}

fn tokens(leases: &[Lease]) -> Vec<Id> {
    let tokens = leases.iter().map(|lease| *lease.token.as_bytes());
    tokens.map(Id).collect()
}

/// The places in the call that a statement changed.
struct Numbers(Vec<i64>);

impl FromRow<Pg> for Numbers {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        Ok(Self(row.maybe(bigints)?.unwrap_or_default()))
    }
}
