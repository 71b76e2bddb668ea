//! Leased locks.

use std::time::Duration;

use super::{Statements, after, now, sql};
use crate::clock::Clock;
use crate::sql::{Cell, Session, Sql, TableNames, Value, lock_name, lock_status, owner};
use crate::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus};

/// Statements on leased locks; `?1` is the name.
#[derive(Debug)]
pub(super) struct LockStatements {
    /// `?2` token · `?3` the lease's end · `?4` now. Changes one row where the lock is taken, else
    /// none.
    acquire: Sql,
    /// `?2` now. Returns how many µs the lock stays closed.
    left: Sql,
    /// `?2` token · `?3` the lease's end.
    extend: Sql,
    /// `?2` token · `?3` the cool-down's end.
    unlock: Sql,
    /// `?2` token. Returns whether another token holds the lock; nothing where there never was one.
    owner: Sql,
}

impl LockStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            acquire: sql(names, ACQUIRE),
            left: sql(
                names,
                "SELECT held_until - ?2 FROM {~locks} WHERE name = ?1",
            ),
            extend: sql(
                names,
                "UPDATE {~locks} SET held_until = ?3 WHERE name = ?1 AND token = ?2",
            ),
            unlock: sql(
                names,
                "UPDATE {~locks} SET token = NULL, held_until = ?3 WHERE name = ?1 AND token = ?2",
            ),
            owner: sql(
                names,
                "SELECT coalesce(token <> ?2, 0) FROM {~locks} WHERE name = ?1",
            ),
        }
    }
}

const ACQUIRE: &str = "INSERT INTO {~locks} AS l (name, token, held_until) VALUES (?1, ?2, ?3) \
     ON CONFLICT (name) DO UPDATE SET token = excluded.token, held_until = excluded.held_until \
     WHERE l.held_until <= ?4 OR l.token = excluded.token";

/// Takes the lock where it is free.
///
/// # Errors
///
/// Those of the session; [`InvalidConfig`](crate::ErrorKind::InvalidConfig) for a name that can't be
/// kept.
pub async fn try_lock<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    request: &LockRequest,
) -> Result<LockStatus, Error> {
    lock_name(&request.name)?;
    let (name, now) = (Value::Text(&request.name), Value::Int(now(clock)));
    let token = Value::Bytes(request.token.as_bytes());
    let until = Value::Int(after(clock, request.lease));
    let acquire = [name, token, until, now];
    if session.execute(&sql.locks.acquire, &acquire).await? > 0 {
        return Ok(LockStatus::Acquired);
    }
    let left = session
        .fetch(&sql.locks.left, &[name, now], &[Cell::Int])
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
    clock: &dyn Clock,
    name: &str,
    token: LeaseToken,
    by: Duration,
) -> Result<LeaseStatus, Error> {
    let until = after(clock, by);
    change(session, sql, &sql.locks.extend, name, token, until).await
}

/// Gives the lock back, closed for `cooldown` more.
///
/// # Errors
///
/// As [`try_lock`].
pub async fn unlock<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    name: &str,
    token: LeaseToken,
    cooldown: Duration,
) -> Result<LeaseStatus, Error> {
    let until = after(clock, cooldown);
    change(session, sql, &sql.locks.unlock, name, token, until).await
}

async fn change<S: Session>(
    session: &mut S,
    sql: &Statements,
    change: &Sql,
    name: &str,
    token: LeaseToken,
    until: i64,
) -> Result<LeaseStatus, Error> {
    lock_name(name)?;
    let holder = [Value::Text(name), Value::Bytes(token.as_bytes())];
    let values = [holder[0], holder[1], Value::Int(until)];
    if session.execute(change, &values).await? > 0 {
        return Ok(LeaseStatus::Ours);
    }
    let found = session
        .fetch(&sql.locks.owner, &holder, &[Cell::Int])
        .await?;
    Ok(owner(found.first().map(|row| row.is(0))))
}
