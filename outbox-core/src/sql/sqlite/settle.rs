//! Settles, extensions and releases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::{Statements, now, sql};
use crate::clock::Clock;
use crate::sql::{Cell, Session, Settling, Sql, TableNames, Value, answer, hex, json, micros};
use crate::{Error, Lease, LeaseStatus, LeaseToken, Retention, Settlement};

/// The statements after a claim.
#[derive(Debug)]
pub(super) struct SettleStatements {
    /// `?1` a JSON array of `[seq, token in hex, kind, microseconds, text or null, reason or null]`
    /// (see [`Kind`](crate::sql::Kind)) · `?2` now · `?3` what publishing does: 0 keeps the row in
    /// the history, 5 deletes it. Returns `seq` and token of each row that it settled. A trigger
    /// moves the terminal ones.
    settle: Sql,
    /// `?1` a JSON array of `[seq, token in hex]` · `?2` the lease's new end · `?3` now. Returns `seq`
    /// and token of each row that it extended.
    extend: Sql,
    /// `?1` a JSON array of `seq`. Returns, for each that is open, its `seq` and whether it is
    /// under a lease.
    held: Sql,
    /// `?1` token · `?2` now. Releases all rows under an unexpired lease with this token.
    release_claim: Sql,
}

impl SettleStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            settle: sql(names, SETTLE),
            extend: sql(names, EXTEND),
            held: sql(
                names,
                "SELECT seq, lease_until IS NOT NULL FROM {~events} \
                 WHERE seq IN (SELECT value FROM json_each(?1))",
            ),
            release_claim: sql(names, RELEASE_CLAIM),
        }
    }
}

/// The `+` here and below: where SQLite has statistics, it may otherwise read all rows under a lease by
/// the index of tokens, and not these by their number.
const SETTLE: &str = "WITH batch AS ( \
       SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS token, \
              json_extract(value, '$[2]') AS kind, json_extract(value, '$[3]') AS after, \
              json_extract(value, '$[4]') AS note, json_extract(value, '$[5]') AS reason \
       FROM json_each(?1)) \
     UPDATE {~events} AS e SET \
       attempts = CASE WHEN batch.kind IN (2, 3) THEN max(e.attempts - 1, 0) ELSE e.attempts END, \
       available_at = CASE WHEN batch.kind IN (1, 2) THEN ?2 + batch.after \
                           WHEN batch.kind = 3 AND e.shape <> 2 THEN ?2 ELSE e.available_at END, \
       shape = CASE WHEN batch.kind IN (1, 2, 3) AND e.shape <> 2 THEN 1 ELSE e.shape END, \
       last_error = coalesce(batch.note, e.last_error), \
       outcome = CASE batch.kind WHEN 0 THEN ?3 WHEN 4 THEN 4 END, \
       reason = batch.reason, settled_at = CASE WHEN batch.kind IN (0, 4) THEN ?2 END, \
       lease_until = NULL \
     FROM batch WHERE e.seq = batch.seq AND hex(e.lease_token) = batch.token \
       AND +e.lease_until IS NOT NULL \
     RETURNING seq, lease_token";

/// The ended lease of an event with a key is not extended. `?3` is older than the statement where that
/// had to wait for other writers: so what counts too is that no other claim is on the key by now.
const EXTEND: &str = "WITH batch AS ( \
       SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS token \
       FROM json_each(?1)) \
     UPDATE {~events} AS e SET lease_until = ?2 \
     FROM batch WHERE e.seq = batch.seq AND hex(e.lease_token) = batch.token \
       AND +e.lease_until IS NOT NULL \
       AND (e.\"key\" IS NULL OR e.lease_until > ?3 AND NOT EXISTS ( \
         SELECT 1 FROM {~events} AS o \
         WHERE o.destination = e.destination AND o.\"key\" = e.\"key\" AND o.\"key\" IS NOT NULL \
           AND o.lease_until > ?3 AND o.lease_until IS NOT NULL \
           AND o.lease_token <> e.lease_token)) \
     RETURNING seq, lease_token";

const RELEASE_CLAIM: &str = "UPDATE {~events} SET \
       attempts = max(attempts - 1, 0), \
       available_at = CASE WHEN shape <> 2 THEN ?2 ELSE available_at END, \
       shape = CASE WHEN shape <> 2 THEN 1 ELSE shape END, \
       lease_until = NULL \
     WHERE lease_token = ?1 AND lease_until > ?2";

/// Settles a batch.
///
/// # Errors
///
/// Those of the session. Where nothing tells that the settle itself failed, it may be done.
pub async fn settle<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    retention: Retention,
    batch: &[Settlement],
) -> Result<Vec<LeaseStatus>, Error> {
    let publish = match retention {
        Retention::DeleteAtOnce => 5,
        Retention::Keep => 0,
    };
    let rows = Settling::new(batch).json();
    let values = [
        Value::Text(&rows),
        Value::Int(now(clock)),
        Value::Int(publish),
    ];
    let ours = changed(session, &sql.settle.settle, &values).await?;
    let leases = batch.iter().map(|settlement| settlement.lease);
    answers(session, sql, leases, &ours, true).await
}

/// Extends leases.
///
/// # Errors
///
/// As [`settle`].
pub async fn extend<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    leases: &[Lease],
    by: Duration,
) -> Result<Vec<LeaseStatus>, Error> {
    let rows: Vec<(i64, String)> = leases
        .iter()
        .map(|lease| (lease.seq, hex(lease.token.as_bytes())))
        .collect();
    let rows = json(&rows);
    let now = now(clock);
    let end = now.saturating_add(micros(by));
    let values = [Value::Text(&rows), Value::Int(end), Value::Int(now)];
    let ours = changed(session, &sql.settle.extend, &values).await?;
    answers(session, sql, leases.iter().copied(), &ours, false).await
}

/// Gives back what the claim with this token took.
///
/// # Errors
///
/// Those of the session.
pub async fn release_claim<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    token: LeaseToken,
) -> Result<u64, Error> {
    let values = [Value::Bytes(token.as_bytes()), Value::Int(now(clock))];
    session.execute(&sql.settle.release_claim, &values).await
}

/// The leases whose rows a statement changed.
async fn changed<S: Session>(
    session: &mut S,
    sql: &Sql,
    values: &[Value<'_>],
) -> Result<HashSet<Lease>, Error> {
    let rows = session
        .fetch(sql, values, &[Cell::Int, Cell::Bytes])
        .await?;
    let lease = |row: &crate::sql::Row| {
        let token = row.bytes.first()?.as_deref()?.try_into().ok()?;
        Some(Lease::new(row.int(0), LeaseToken::from_bytes(token)))
    };
    Ok(rows.iter().filter_map(lease).collect())
}

/// Tells lost leases from ended ones; asks only where something was not changed.
async fn answers<S: Session>(
    session: &mut S,
    sql: &Statements,
    leases: impl Iterator<Item = Lease> + Clone,
    ours: &HashSet<Lease>,
    ended: bool,
) -> Result<Vec<LeaseStatus>, Error> {
    let missing: Vec<i64> = leases
        .clone()
        .filter(|lease| !ours.contains(lease))
        .map(|lease| lease.seq)
        .collect();
    let mut held = HashMap::new();
    if !missing.is_empty() {
        let list = json(&missing);
        let rows = session
            .fetch(&sql.settle.held, &[Value::Text(&list)], &[Cell::Int; 2])
            .await?;
        held.extend(rows.iter().map(|row| (row.int(0), row.is(1))));
    }
    Ok(answer(leases, ours, ended, &held))
}
