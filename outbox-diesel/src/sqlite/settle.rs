//! Ending, extending and giving back leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use diesel::deserialize;
use diesel::row::Row;
use diesel::sqlite::Sqlite;
use diesel::{QueryResult, SqliteConnection};
use outbox_core::sql::{Settling, answer, hex, json, micros};
use outbox_core::{Lease, LeaseStatus, LeaseToken, Retention, Settlement};

use super::value::Value;
use super::{SqliteStore, execute, rows};
use crate::read::{Columns, FromRow, Reader};
use crate::rows::Held;

impl SqliteStore {
    pub(super) fn settle_on(
        &self,
        conn: &mut SqliteConnection,
        batch: &[Settlement],
    ) -> QueryResult<Vec<LeaseStatus>> {
        let publish = match self.retention {
            Retention::DeleteAtOnce => 5,
            _ => 0,
        };
        let values = vec![
            Value::owned(Some(Settling::new(batch).json())),
            Value::number(self.now_micros()),
            Value::number(publish),
        ];
        let changed = rows(conn, &self.sql.settle.settle, values)?;
        let leases = batch.iter().map(|settlement| settlement.lease);
        self.answer(conn, leases, changed, true)
    }

    pub(super) fn extend_on(
        &self,
        conn: &mut SqliteConnection,
        leases: &[Lease],
        by: Duration,
    ) -> QueryResult<Vec<LeaseStatus>> {
        let all: Vec<(i64, String)> = leases
            .iter()
            .map(|lease| (lease.seq, hex(lease.token.as_bytes())))
            .collect();
        let values = vec![
            Value::owned(Some(json(&all))),
            Value::number(self.now_micros().saturating_add(micros(by))),
        ];
        let changed = rows(conn, &self.sql.settle.extend, values)?;
        self.answer(conn, leases.iter().copied(), changed, false)
    }

    pub(super) fn release_claim_on(
        &self,
        conn: &mut SqliteConnection,
        token: LeaseToken,
    ) -> QueryResult<u64> {
        let values = vec![
            Value::Id(*token.as_bytes()),
            Value::number(self.now_micros()),
        ];
        execute(conn, &self.sql.settle.release_claim, values)
    }

    /// Tells lost leases from ended ones; asks only where something was not changed.
    fn answer(
        &self,
        conn: &mut SqliteConnection,
        leases: impl Iterator<Item = Lease> + Clone,
        changed: Vec<Changed>,
        ended: bool,
    ) -> QueryResult<Vec<LeaseStatus>> {
        let ours: HashSet<Lease> = changed.into_iter().map(|Changed(lease)| lease).collect();
        let missing: Vec<i64> = leases
            .clone()
            .filter(|lease| !ours.contains(lease))
            .map(|lease| lease.seq)
            .collect();
        let mut held = HashMap::new();
        if !missing.is_empty() {
            let values = vec![Value::owned(Some(json(&missing)))];
            let found: Vec<Held> = rows(conn, &self.sql.settle.held, values)?;
            held.extend(found.into_iter().map(|Held(seq, other)| (seq, other)));
        }
        Ok(answer(leases, &ours, ended, &held))
    }
}

/// A lease that a statement changed.
struct Changed(Lease);

impl FromRow<Sqlite> for Changed {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        row: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        let seq = row.get(Sqlite::bigint)?;
        let token = LeaseToken::from_bytes(row.get(Sqlite::uuid)?);
        Ok(Self(Lease::new(seq, token)))
    }
}
