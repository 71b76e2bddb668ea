//! Leased locks. Each statement commits by itself.

use std::time::Duration;

use super::{Cell, Session, Statements, Value, sql};
use crate::locks::check_name;
use crate::sql::{Sql, TableNames, lock_status, micros, owner};
use crate::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus};

#[derive(Debug)]
pub(super) struct LockSql {
    /// Name, token, µs of the lease.
    insert: Sql,
    /// Token, µs of the lease, name, token.
    take: Sql,
    /// How many µs the lock stays closed. Name.
    left: Sql,
    /// µs, name, token.
    extend: Sql,
    /// µs of the cool-down, name, token.
    unlock: Sql,
    /// Whether another token holds the lock. Token, name.
    owner: Sql,
}

impl LockSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            insert: sql(
                names,
                "INSERT IGNORE INTO {locks} (name, token, held_until) VALUES (?, ?, :now + ?)",
            ),
            take: sql(
                names,
                "UPDATE {locks} SET token = ?, held_until = :now + ? \
                 WHERE name = ? AND (held_until <= :now OR token = ?)",
            ),
            left: sql(
                names,
                "SELECT held_until - :now FROM {locks} WHERE name = ?",
            ),
            extend: sql(
                names,
                "UPDATE {locks} SET held_until = :now + ? WHERE name = ? AND token = ?",
            ),
            unlock: sql(
                names,
                "UPDATE {locks} SET held_until = :now + ?, token = NULL \
                 WHERE name = ? AND token = ?",
            ),
            owner: sql(
                names,
                "SELECT COALESCE(token <> ?, 0) FROM {locks} WHERE name = ?",
            ),
        }
    }
}

/// Takes a lock, or says how long it is closed.
///
/// # Errors
///
/// Those of the session; [`InvalidConfig`](crate::ErrorKind::InvalidConfig) for a name that can't be
/// kept.
pub async fn try_lock<S: Session>(
    session: &mut S,
    sql: &Statements,
    request: &LockRequest,
) -> Result<LockStatus, Error> {
    check_name(&request.name)?;
    let sql = &sql.locks;
    let name = Value::Bytes(request.name.as_bytes());
    let token = Value::Bytes(request.token.as_bytes());
    let lease = Value::Int(micros(request.lease));
    let (take, insert) = ([token, lease, name, token], [name, token, lease]);
    if session.execute(&sql.take, &take).await? > 0
        || session.execute(&sql.insert, &insert).await? > 0
    {
        return Ok(LockStatus::Acquired);
    }
    let left = session.fetch(&sql.left, &[name], &[Cell::Int]).await?;
    Ok(lock_status(left.first().and_then(|row| row.maybe(0))))
}

/// Lets the lease run until `by` from now.
///
/// # Errors
///
/// As [`try_lock`].
pub async fn extend_lock<S: Session>(
    session: &mut S,
    sql: &Statements,
    name: &str,
    token: LeaseToken,
    by: Duration,
) -> Result<LeaseStatus, Error> {
    change(session, sql, &sql.locks.extend, name, token, by).await
}

/// Gives the lock back, closed for `cooldown` more.
///
/// # Errors
///
/// As [`try_lock`].
pub async fn unlock<S: Session>(
    session: &mut S,
    sql: &Statements,
    name: &str,
    token: LeaseToken,
    cooldown: Duration,
) -> Result<LeaseStatus, Error> {
    change(session, sql, &sql.locks.unlock, name, token, cooldown).await
}

async fn change<S: Session>(
    session: &mut S,
    sql: &Statements,
    change: &Sql,
    name: &str,
    token: LeaseToken,
    by: Duration,
) -> Result<LeaseStatus, Error> {
    check_name(name)?;
    let name = Value::Bytes(name.as_bytes());
    let token = Value::Bytes(token.as_bytes());
    let values = [Value::Int(micros(by)), name, token];
    if session.execute(change, &values).await? > 0 {
        return Ok(LeaseStatus::Ours);
    }
    let (sql, values) = (&sql.locks.owner, [token, name]);
    let found = session.fetch(sql, &values, &[Cell::Int]).await?;
    Ok(owner(found.first().map(|row| row.is(0))))
}
