//! Leased locks. Each statement runs in autocommit mode.

use std::time::Duration;

use super::{Statements, sql};
use crate::sql::{Cell, Session, Sql, TableNames, Value, lock_name, lock_status, micros, owner};
use crate::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus};

/// Statements on leased locks; `$1` is the name, `$2` the token.
#[derive(Debug)]
pub(super) struct LockSql {
    /// `$3` µs of the lease. Changes one row where the lock is taken, else none.
    acquire: Sql,
    /// `$1` alone. How many µs the lock stays closed.
    left: Sql,
    /// `$3` µs.
    extend: Sql,
    /// `$3` µs of the cool-down.
    unlock: Sql,
    /// Whether another token holds the lock; none where there never was one.
    owner: Sql,
}

impl LockSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            acquire: sql(names, ACQUIRE),
            left: sql(names, LEFT),
            extend: sql(names, EXTEND),
            unlock: sql(names, UNLOCK),
            owner: sql(names, OWNER),
        }
    }
}

const ACQUIRE: &str = "INSERT INTO {locks} AS l (name, token, held_until)
VALUES ($1, $2, now() + $3::bigint * interval '1 microsecond')
ON CONFLICT (name) DO UPDATE SET token = EXCLUDED.token, held_until = EXCLUDED.held_until
WHERE l.held_until <= now() OR l.token = EXCLUDED.token";

const LEFT: &str = "SELECT (extract(epoch FROM held_until - now()) * 1000000)::bigint
FROM {locks} WHERE name = $1";

const EXTEND: &str = "UPDATE {locks} SET held_until = now() + $3::bigint * interval '1 microsecond'
WHERE name = $1 AND token = $2";

const UNLOCK: &str = "UPDATE {locks}
SET token = NULL, held_until = now() + $3::bigint * interval '1 microsecond'
WHERE name = $1 AND token = $2";

const OWNER: &str = "SELECT COALESCE(token <> $2, false)::int::bigint FROM {locks} WHERE name = $1";

/// Takes the lock where it is free.
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
    lock_name(&request.name)?;
    let name = Value::Text(&request.name);
    let lease = Value::Int(micros(request.lease));
    let acquire = [name, Value::Id(*request.token.as_bytes()), lease];
    if session.execute(&sql.locks.acquire, &acquire).await? > 0 {
        return Ok(LockStatus::Acquired);
    }
    let left = session
        .fetch(&sql.locks.left, &[name], &[Cell::Int])
        .await?;
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
    lock_name(name)?;
    let holder = [Value::Text(name), Value::Id(*token.as_bytes())];
    let values = [holder[0], holder[1], Value::Int(micros(by))];
    if session.execute(change, &values).await? > 0 {
        return Ok(LeaseStatus::Ours);
    }
    let found = session
        .fetch(&sql.locks.owner, &holder, &[Cell::Int])
        .await?;
    Ok(owner(found.first().map(|row| row.is(0))))
}
