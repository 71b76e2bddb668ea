//! Ending, extending and giving back leases. Each call is one transaction.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::claiming::numbers;
use super::{Cell, Session, Statements, Value, sql};
use crate::sql::{Kind, Settling, Sql, TableNames, answer, at_places, hex, json, micros};
use crate::{Error, Lease, LeaseStatus, LeaseToken, Retention, Settlement};

#[derive(Debug)]
pub(super) struct SettleSql {
    /// Locks the rows: place from 1 on, whether a token is on it, whether it is the lease's, `seq`.
    /// `[[seq, token], …]`.
    lock: Sql,
    /// All the others but the last: `[[seq, kind, µs, note, reason], …]`.
    keep: Sql,
    bury: Sql,
    block: Sql,
    remove: Sql,
    again: Sql,
    /// Those whose lease has ended by now, of events with a key: `seq`. Seqs.
    ended: Sql,
    /// Seqs, µs twice.
    extend: Sql,
    /// `seq`, without locks. Token.
    of_claim: Sql,
    /// Seqs, token.
    release_claim: Sql,
}

impl SettleSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let fill = |template: &str| sql(names, &template.replace(":batch", BATCH));
        Self {
            lock: fill(LOCK),
            keep: fill(KEEP),
            bury: fill(BURY),
            block: fill(BLOCK),
            remove: fill(
                "DELETE e FROM :batch :events ON e.seq = j.seq \
                 WHERE j.kind IN (0, 4)",
            ),
            again: fill(AGAIN),
            ended: fill(
                "SELECT e.seq FROM :seqs :events ON e.seq = j.n \
                 WHERE e.`key` IS NOT NULL AND e.lease_until <= :now",
            ),
            extend: fill(
                "UPDATE :seqs :events ON e.seq = j.n SET \
                   e.lease_until = :now + ?, e.place = IF(e.shape = 1, :now + ?, e.place)",
            ),
            of_claim: fill(
                "SELECT seq FROM {events} FORCE INDEX (token) WHERE lease_token = ? ORDER BY seq",
            ),
            release_claim: fill(RELEASE_CLAIM),
        }
    }
}

const BATCH: &str = "JSON_TABLE(?, '$[*]' COLUMNS ( \
    seq BIGINT PATH '$[0]', kind INT PATH '$[1]', after BIGINT PATH '$[2]', \
    note TEXT CHARACTER SET utf8mb4 PATH '$[3]', \
    reason VARCHAR(64) CHARACTER SET utf8mb4 PATH '$[4]')) j";

const LOCK: &str = "SELECT j.n, e.lease_token IS NOT NULL, \
      COALESCE(e.lease_token = UNHEX(j.token), 0), e.seq \
    FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
      n FOR ORDINALITY, seq BIGINT PATH '$[0]', token VARCHAR(32) PATH '$[1]')) j \
    :events ON e.seq = j.seq :lock(e)";

const KEEP: &str = "INSERT INTO {published} (seq, id, created_at, published_at, attempts, \
      replays, event_type, destination, `key`, content_type, aggregate_type, aggregate_id, \
      headers, dedup_key, last_error, payload) \
    SELECT e.seq, e.id, e.created_at, :now, e.attempts, e.replays, e.event_type, e.destination, \
      e.`key`, e.content_type, e.aggregate_type, e.aggregate_id, e.headers, e.dedup_key, \
      e.last_error, e.payload \
    FROM :batch :events ON e.seq = j.seq WHERE j.kind = 0";

const BURY: &str = "INSERT INTO {dead} (seq, id, lane, created_at, expires_at, dead_at, attempts, \
      replays, max_attempts, event_type, destination, `key`, content_type, aggregate_type, \
      aggregate_id, headers, dedup_key, reason, last_error, payload) \
    SELECT e.seq, e.id, IF(e.`key` IS NULL, NULL, e.place), e.created_at, e.expires_at, :now, \
      e.attempts, e.replays, e.max_attempts, e.event_type, e.destination, e.`key`, e.content_type, \
      e.aggregate_type, e.aggregate_id, e.headers, e.dedup_key, COALESCE(j.reason, 'other'), \
      COALESCE(j.note, e.last_error), e.payload \
    FROM :batch :events ON e.seq = j.seq WHERE j.kind = 4";

/// Comes last, of letters that are buried: a settle that has the record of a blocked key waits for no row.
const BLOCK: &str = "INSERT IGNORE INTO {blocked} (destination, `key`, lane, seq, since) \
    SELECT e.destination, e.`key`, e.lane, e.seq, :now \
    FROM :batch :dead ON e.seq = j.seq \
    STRAIGHT_JOIN {destinations} d FORCE INDEX (PRIMARY) \
      ON d.destination = e.destination AND d.dead_head = 'block' \
    WHERE j.kind = 4 AND e.lane IS NOT NULL ORDER BY e.lane, e.seq";

const AGAIN: &str = "UPDATE :batch :events ON e.seq = j.seq SET \
      e.available_at = IF(j.kind = 3, LEAST(e.available_at, :now), :now + j.after), \
      e.place = IF(e.`key` IS NULL, :now + j.after, e.place), \
      e.shape = IF(e.`key` IS NULL, 1, 2), \
      e.attempts = IF(j.kind = 1, e.attempts, GREATEST(e.attempts, 1) - 1), \
      e.last_error = COALESCE(j.note, e.last_error), \
      e.lease_token = NULL, e.lease_until = NULL \
    WHERE j.kind IN (1, 2, 3)";

/// By the primary key, as all that write rows and wait for them (claims skip): who goes by the index of
/// tokens locks an entry before its row, where a settle has the row and locks the entry.
const RELEASE_CLAIM: &str = "UPDATE :seqs :events ON e.seq = j.n SET \
      e.available_at = LEAST(e.available_at, :now), \
      e.place = IF(e.`key` IS NULL, :now, e.place), \
      e.shape = IF(e.`key` IS NULL, 1, 2), \
      e.attempts = GREATEST(e.attempts, 1) - 1, \
      e.lease_token = NULL, e.lease_until = NULL \
    WHERE e.lease_token = ? AND e.lease_until > :now";

/// Settles a batch.
///
/// # Errors
///
/// Those of the session; nothing is settled where the transaction is not committed.
pub async fn settle<S: Session>(
    session: &mut S,
    sql: &Statements,
    retention: Retention,
    batch: &[Settlement],
) -> Result<Vec<LeaseStatus>, Error> {
    let sql = &sql.settle;
    let columns = Settling::new(batch);
    let (ours, held) = lock(session, sql, &columns.leases).await?;
    let rows: Vec<_> = (0..columns.seqs.len())
        .filter(|row| ours.contains(&columns.leases[*row]))
        .map(|row| {
            let (note, reason) = (columns.notes[row].as_deref(), columns.reasons[row]);
            let (seq, kind, after) = (columns.seqs[row], columns.kinds[row], columns.after[row]);
            (seq, kind, after, note, reason)
        })
        .collect();
    let has = |kinds: &[Kind]| {
        let has = |kind: &Kind| rows.iter().any(|row| row.1 == *kind as i16);
        kinds.iter().any(has)
    };
    let list = json(&rows);
    let list = [Value::Text(&list)];
    if has(&[Kind::Published]) && retention == Retention::Keep {
        session.execute(&sql.keep, &list).await?;
    }
    if has(&[Kind::Dead]) {
        session.execute(&sql.bury, &list).await?;
    }
    if has(&[Kind::Published, Kind::Dead]) {
        session.execute(&sql.remove, &list).await?;
    }
    if has(&[Kind::Retry, Kind::Defer, Kind::Release]) {
        session.execute(&sql.again, &list).await?;
    }
    if has(&[Kind::Dead]) {
        session.execute(&sql.block, &list).await?;
    }
    let leases = batch.iter().map(|settlement| settlement.lease);
    Ok(answer(leases, &ours, true, &held))
}

/// Extends leases.
///
/// # Errors
///
/// As [`settle`].
pub async fn extend<S: Session>(
    session: &mut S,
    sql: &Statements,
    leases: &[Lease],
    by: Duration,
) -> Result<Vec<LeaseStatus>, Error> {
    let mut sorted = leases.to_vec();
    sorted.sort_unstable_by_key(|lease| lease.seq);
    let (mut ours, held) = lock(session, &sql.settle, &sorted).await?;
    let seqs = |leases: &HashSet<Lease>| leases.iter().map(|lease| lease.seq).collect();
    let list: Vec<i64> = seqs(&ours);
    if !list.is_empty() {
        // The ended lease of an event with a key is not extended. Whether it has ended is judged when
        // the rows are locked: meanwhile a claim may have found so and begun another run of the key.
        // Such a claim locks the rows whose lease had ended, so that it comes either before or after.
        let list = json(&list);
        let ended = numbers(session, &sql.settle.ended, &[Value::Text(&list)]).await?;
        ours.retain(|lease| !ended.contains(&lease.seq));
    }
    let list: Vec<i64> = seqs(&ours);
    if !list.is_empty() {
        let (list, by) = (json(&list), Value::Int(micros(by)));
        let values = [Value::Text(&list), by, by];
        session.execute(&sql.settle.extend, &values).await?;
    }
    Ok(answer(leases.iter().copied(), &ours, false, &held))
}

/// Gives back what the claim with this token took.
///
/// # Errors
///
/// As [`settle`].
pub async fn release_claim<S: Session>(
    session: &mut S,
    sql: &Statements,
    token: LeaseToken,
) -> Result<u64, Error> {
    let (sql, token) = (&sql.settle, Value::Bytes(token.as_bytes()));
    let seqs = json(&numbers(session, &sql.of_claim, &[token]).await?);
    let values = [Value::Text(&seqs), token];
    session.execute(&sql.release_claim, &values).await
}

/// Locks the rows of leases, which come by `seq`. Returns the leases that are on them, and for each
/// open row whether a token is on it.
async fn lock<S: Session>(
    session: &mut S,
    sql: &SettleSql,
    leases: &[Lease],
) -> Result<(HashSet<Lease>, HashMap<i64, bool>), Error> {
    let rows: Vec<(i64, String)> = leases
        .iter()
        .map(|lease| (lease.seq, hex(lease.token.as_bytes())))
        .collect();
    let list = json(&rows);
    let found = session
        .fetch(&sql.lock, &[Value::Text(&list)], &[Cell::Int; 4])
        .await?;
    let mine = found.iter().filter(|row| row.is(2));
    let places: Vec<i64> = mine.map(|row| row.int(0)).collect();
    let held = found.iter().map(|row| (row.int(3), row.is(1))).collect();
    Ok((at_places(leases, &places), held))
}
