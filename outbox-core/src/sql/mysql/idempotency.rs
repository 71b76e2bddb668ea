//! Idempotency keys and inbox ids. Each statement commits by itself, but those of `accept`.
//!
//! The server has no upsert with a condition: a row is inserted where there is none, else updated
//! where it is free, else looked at.

use std::time::Duration;

use super::{Cell, Session, Statements, Value, sql};
use crate::sql::{InboxRow, KeyRow, Sql, TableNames, accepted, micros, owner};
use crate::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, IdempotencyKey, InboxMessage,
    LeaseStatus, LeaseToken,
};

#[derive(Debug)]
pub(super) struct IdempotencySql {
    /// Scope, key, fingerprint, token, µs of the lease, µs of the retention.
    insert: Sql,
    /// Fingerprint, token, µs of the lease, µs of the retention; scope, key, fingerprint, token.
    take: Sql,
    /// Whether the fingerprint is this one, µs left, answer. Fingerprint, scope, key, fingerprint,
    /// token; no row where a run could start by now.
    look: Sql,
    /// Answer, µs of the retention, scope, key, token.
    complete: Sql,
    /// Scope, key, token.
    abandon: Sql,
    /// µs, scope, key, token.
    extend: Sql,
    /// Whether another token has the key. Token, scope, key.
    owner: Sql,
    /// Rows.
    prune_keys: Sql,
    /// Source, id, fingerprint, µs of the retention.
    insert_message: Sql,
    /// Whether its time is over, fingerprint. Source, id.
    look_at_message: Sql,
    /// Fingerprint, µs of the retention, source, id.
    renew_message: Sql,
    /// Rows.
    prune_inbox: Sql,
}

impl IdempotencySql {
    pub(super) fn new(names: &TableNames) -> Self {
        let fill = |template: &str| sql(names, &template.replace(":free", FREE));
        Self {
            insert: fill(
                "INSERT IGNORE INTO {idempotency} \
                   (scope, `key`, fingerprint, token, lease_until, expires_at) \
                 VALUES (?, ?, ?, ?, :now + ?, :now + ?)",
            ),
            take: fill(
                "UPDATE {idempotency} SET fingerprint = ?, token = ?, lease_until = :now + ?, \
                   answer = NULL, expires_at = :now + ? \
                 WHERE scope = ? AND `key` = ? AND :free",
            ),
            look: fill(
                "SELECT fingerprint = ?, lease_until - :now, answer FROM {idempotency} \
                 WHERE scope = ? AND `key` = ? AND NOT :free",
            ),
            complete: fill(
                "UPDATE {idempotency} SET answer = ?, lease_until = NULL, expires_at = :now + ? \
                 WHERE scope = ? AND `key` = ? AND token = ?",
            ),
            abandon: fill(
                "DELETE FROM {idempotency} \
                 WHERE scope = ? AND `key` = ? AND token = ? AND answer IS NULL",
            ),
            extend: fill(
                "UPDATE {idempotency} SET lease_until = :now + ? \
                 WHERE scope = ? AND `key` = ? AND token = ? AND answer IS NULL",
            ),
            owner: fill("SELECT token <> ? FROM {idempotency} WHERE scope = ? AND `key` = ?"),
            prune_keys: fill(
                "DELETE FROM {idempotency} \
                 WHERE expires_at <= :now AND (answer IS NOT NULL OR lease_until <= :now) \
                 ORDER BY expires_at LIMIT ?",
            ),
            insert_message: fill(
                "INSERT IGNORE INTO {inbox} (source, id, fingerprint, expires_at) \
                 VALUES (?, ?, ?, :now + ?)",
            ),
            look_at_message: fill(
                "SELECT expires_at <= :now, fingerprint FROM {inbox} \
                 WHERE source = ? AND id = ? LOCK IN SHARE MODE",
            ),
            renew_message: fill(
                "UPDATE {inbox} SET fingerprint = ?, expires_at = :now + ? \
                 WHERE source = ? AND id = ?",
            ),
            prune_inbox: fill(
                "DELETE FROM {inbox} WHERE expires_at <= :now ORDER BY expires_at LIMIT ?",
            ),
        }
    }
}

/// The retention has passed and nobody runs; or the same request, whose run is the caller's own or
/// has lost its lease. Fingerprint, token.
const FREE: &str = "( \
    (expires_at <= :now AND (answer IS NOT NULL OR lease_until <= :now)) \
    OR (fingerprint = ? AND answer IS NULL AND (token = ? OR lease_until <= :now)))";

fn scope(key: &IdempotencyKey) -> Value<'_> {
    Value::Bytes(key.scope().as_bytes())
}

fn name(key: &IdempotencyKey) -> Value<'_> {
    Value::Bytes(key.key().as_bytes())
}

fn period(duration: Duration) -> Value<'static> {
    Value::Int(micros(duration))
}

/// Starts a run, or says why not.
///
/// # Errors
///
/// Those of the session; [`Conflict`](ErrorKind::Conflict) where the key came free meanwhile.
pub async fn begin_key<S: Session>(
    session: &mut S,
    sql: &Statements,
    request: &BeginKey,
) -> Result<Begun, Error> {
    let sql = &sql.idempotency;
    let (scope, name) = (scope(&request.key), name(&request.key));
    let print = Value::Bytes(request.fingerprint.as_bytes());
    let token = Value::Bytes(request.token.as_bytes());
    let (lease, kept) = (period(request.lease), period(request.retention));
    let insert = [scope, name, print, token, lease, kept];
    if session.execute(&sql.insert, &insert).await? > 0 {
        return Ok(Begun::Started);
    }
    let take = [print, token, lease, kept, scope, name, print, token];
    if session.execute(&sql.take, &take).await? > 0 {
        return Ok(Begun::Started);
    }
    let look = [print, scope, name, print, token];
    let cells = [Cell::Int, Cell::Int, Cell::Bytes];
    let mut found = session.fetch(&sql.look, &look, &cells).await?;
    let free = || Error::new(ErrorKind::Conflict, "begin_key: the key is free by now");
    let row = found.pop().ok_or_else(free)?;
    Ok(KeyRow::read(row).begun())
}

/// Keeps the answer and ends the run.
///
/// # Errors
///
/// Those of the session.
pub async fn complete_key<S: Session>(
    session: &mut S,
    sql: &Statements,
    request: &CompleteKey,
) -> Result<LeaseStatus, Error> {
    let key = &request.key;
    let values = [
        Value::Bytes(&request.answer),
        period(request.retention),
        scope(key),
        name(key),
        Value::Bytes(request.token.as_bytes()),
    ];
    let complete = &sql.idempotency.complete;
    prove(session, sql, key, request.token, complete, &values).await
}

/// Forgets the key.
///
/// # Errors
///
/// Those of the session.
pub async fn abandon_key<S: Session>(
    session: &mut S,
    sql: &Statements,
    key: &IdempotencyKey,
    token: LeaseToken,
) -> Result<LeaseStatus, Error> {
    let values = [scope(key), name(key), Value::Bytes(token.as_bytes())];
    let abandon = &sql.idempotency.abandon;
    prove(session, sql, key, token, abandon, &values).await
}

/// Lets the lease run until `by` from now.
///
/// # Errors
///
/// Those of the session.
pub async fn extend_key<S: Session>(
    session: &mut S,
    sql: &Statements,
    key: &IdempotencyKey,
    token: LeaseToken,
    by: Duration,
) -> Result<LeaseStatus, Error> {
    let token_value = Value::Bytes(token.as_bytes());
    let values = [period(by), scope(key), name(key), token_value];
    let extend = &sql.idempotency.extend;
    prove(session, sql, key, token, extend, &values).await
}

/// Runs a statement that changes the row of this token; tells what it is where it is not.
async fn prove<S: Session>(
    session: &mut S,
    sql: &Statements,
    key: &IdempotencyKey,
    token: LeaseToken,
    change: &Sql,
    values: &[Value<'_>],
) -> Result<LeaseStatus, Error> {
    if session.execute(change, values).await? > 0 {
        return Ok(LeaseStatus::Ours);
    }
    let values = [Value::Bytes(token.as_bytes()), scope(key), name(key)];
    let sql = &sql.idempotency.owner;
    let found = session.fetch(sql, &values, &[Cell::Int]).await?;
    Ok(owner(found.first().map(|row| row.is(0))))
}

/// Deletes up to `rows` keys whose retention has passed.
///
/// # Errors
///
/// Those of the session.
pub async fn prune_keys<S: Session>(
    session: &mut S,
    sql: &Statements,
    rows: u32,
) -> Result<u64, Error> {
    let values = [Value::Int(rows.into())];
    session.execute(&sql.idempotency.prune_keys, &values).await
}

/// Deletes up to `rows` inbox ids whose retention has passed.
///
/// # Errors
///
/// Those of the session.
pub async fn prune_inbox<S: Session>(
    session: &mut S,
    sql: &Statements,
    rows: u32,
) -> Result<u64, Error> {
    let values = [Value::Int(rows.into())];
    session.execute(&sql.idempotency.prune_inbox, &values).await
}

/// Accepts a message, once; in the caller's transaction.
///
/// # Errors
///
/// Those of the session.
pub async fn accept<S: Session>(
    session: &mut S,
    sql: &Statements,
    message: &InboxMessage,
) -> Result<Accepted, Error> {
    let sql = &sql.idempotency;
    let (scope, name) = (scope(&message.key), name(&message.key));
    let print = message.fingerprint.as_ref();
    let print = Value::bytes(print.map(|print| &print.as_bytes()[..]));
    let kept = period(message.retention);
    let insert = [scope, name, print, kept];
    if session.execute(&sql.insert_message, &insert).await? > 0 {
        return Ok(Accepted::First);
    }
    // A locking read sees what is committed, whatever the transaction's snapshot.
    let cells = [Cell::Int, Cell::Bytes];
    let look = &sql.look_at_message;
    let found = session.fetch(look, &[scope, name], &cells).await?.pop();
    if found.as_ref().is_some_and(|row| row.is(0)) {
        let renew = [print, kept, scope, name];
        session.execute(&sql.renew_message, &renew).await?;
        return Ok(Accepted::First);
    }
    accepted(found.map(InboxRow::read), message.fingerprint)
}
