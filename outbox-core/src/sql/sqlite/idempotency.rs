//! Idempotency keys and inbox ids.

use std::time::Duration;

use super::{Statements, after, now, sql};
use crate::clock::Clock;
use crate::sql::{Cell, InboxRow, KeyRow, Session, Sql, TableNames, Value, accepted, owner};
use crate::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, IdempotencyKey, InboxMessage,
    LeaseStatus, LeaseToken,
};

/// Statements on idempotency keys and inbox ids.
///
/// `?1` and `?2` are the scope and the key (or the source and the id).
#[derive(Debug)]
pub(super) struct IdempotencyStatements {
    /// `?3` fingerprint · `?4` token · `?5` now · `?6` the lease's end · `?7` the retention's end.
    /// Changes one row where the run starts, else none.
    begin: Sql,
    /// `?3` fingerprint · `?4` token · `?5` now. Returns the columns of
    /// [`KeyRow`](crate::sql::KeyRow); nothing where a run could start by now.
    look: Sql,
    /// `?3` token · `?4` answer · `?5` the retention's end.
    complete: Sql,
    /// `?3` token.
    abandon: Sql,
    /// `?3` token · `?4` the lease's end.
    extend: Sql,
    /// `?3` token. Returns whether another has the key; nothing where nobody has.
    owner: Sql,
    /// `?3` fingerprint or null · `?4` now · `?5` the retention's end. Changes one row where the
    /// message is new, else none.
    accept: Sql,
    /// Returns the fingerprint.
    accepted: Sql,
    /// `?1` now · `?2` rows.
    prune_keys: Sql,
    /// `?1` now · `?2` rows.
    prune_inbox: Sql,
}

impl IdempotencyStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        let fill = |template: &str| sql(names, &template.replace(":free", FREE));
        Self {
            begin: fill(BEGIN),
            look: fill(LOOK),
            complete: fill(
                "UPDATE {~idempotency} SET answer = ?4, lease_until = NULL, expires_at = ?5 \
                 WHERE scope = ?1 AND \"key\" = ?2 AND token = ?3",
            ),
            abandon: fill(
                "DELETE FROM {~idempotency} \
                 WHERE scope = ?1 AND \"key\" = ?2 AND token = ?3 AND answer IS NULL",
            ),
            extend: fill(
                "UPDATE {~idempotency} SET lease_until = ?4 \
                 WHERE scope = ?1 AND \"key\" = ?2 AND token = ?3 AND answer IS NULL",
            ),
            owner: fill("SELECT token <> ?3 FROM {~idempotency} WHERE scope = ?1 AND \"key\" = ?2"),
            accept: fill(ACCEPT),
            accepted: fill("SELECT fingerprint FROM {~inbox} WHERE source = ?1 AND id = ?2"),
            prune_keys: fill(
                "DELETE FROM {~idempotency} WHERE rowid IN ( \
                   SELECT rowid FROM {~idempotency} \
                   WHERE expires_at <= ?1 AND (answer IS NOT NULL OR lease_until <= ?1) \
                   ORDER BY expires_at LIMIT ?2)",
            ),
            prune_inbox: fill(
                "DELETE FROM {~inbox} WHERE (source, id) IN ( \
                   SELECT source, id FROM {~inbox} WHERE expires_at <= ?1 \
                   ORDER BY expires_at LIMIT ?2)",
            ),
        }
    }
}

/// The retention has passed and nobody runs; or the same request, whose run is the caller's own or
/// has lost its lease.
const FREE: &str = "( \
       k.expires_at <= ?5 AND (k.answer IS NOT NULL OR k.lease_until <= ?5) \
       OR k.fingerprint = ?3 AND k.answer IS NULL AND (k.token = ?4 OR k.lease_until <= ?5))";

const BEGIN: &str = "INSERT INTO {~idempotency} AS k \
       (scope, \"key\", fingerprint, token, lease_until, expires_at) \
     VALUES (?1, ?2, ?3, ?4, ?6, ?7) \
     ON CONFLICT (scope, \"key\") DO UPDATE \
     SET fingerprint = excluded.fingerprint, token = excluded.token, \
       lease_until = excluded.lease_until, answer = NULL, expires_at = excluded.expires_at \
     WHERE :free";

const LOOK: &str = "SELECT fingerprint = ?3, answer, lease_until - ?5 FROM {~idempotency} k \
     WHERE scope = ?1 AND \"key\" = ?2 AND NOT :free";

const ACCEPT: &str = "INSERT INTO {~inbox} AS i (source, id, fingerprint, expires_at) \
     VALUES (?1, ?2, ?3, ?5) \
     ON CONFLICT (source, id) DO UPDATE \
     SET fingerprint = excluded.fingerprint, expires_at = excluded.expires_at \
     WHERE i.expires_at <= ?4";

/// How often a run asks for a key that came free between two statements.
const TRIES: u32 = 4;

fn on(key: &IdempotencyKey) -> [Value<'_>; 2] {
    [Value::Text(key.scope()), Value::Text(key.key())]
}

/// Starts a run, or says why not.
///
/// # Errors
///
/// Those of the session; [`Conflict`](ErrorKind::Conflict) where the key came free each time after it
/// was found taken.
pub async fn begin_key<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    request: &BeginKey,
) -> Result<Begun, Error> {
    let sql = &sql.idempotency;
    let [scope, key] = on(&request.key);
    let print = Value::Bytes(request.fingerprint.as_bytes());
    let token = Value::Bytes(request.token.as_bytes());
    for _ in 0..TRIES {
        let now = Value::Int(now(clock));
        let lease = Value::Int(after(clock, request.lease));
        let kept = Value::Int(after(clock, request.retention));
        let begin = [scope, key, print, token, now, lease, kept];
        if session.execute(&sql.begin, &begin).await? > 0 {
            return Ok(Begun::Started);
        }
        let look = [scope, key, print, token, now];
        let cells = [Cell::Int, Cell::Bytes, Cell::Int];
        if let Some(row) = session.fetch(&sql.look, &look, &cells).await?.pop() {
            return Ok(KeyRow::read(row).begun());
        }
    }
    let problem = "begin_key: others are faster each time";
    Err(Error::new(ErrorKind::Conflict, problem))
}

/// Keeps the answer and ends the run.
///
/// # Errors
///
/// Those of the session.
pub async fn complete_key<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    request: &CompleteKey,
) -> Result<LeaseStatus, Error> {
    let answer = Value::Bytes(&request.answer);
    let kept = Value::Int(after(clock, request.retention));
    let complete = &sql.idempotency.complete;
    let (key, token) = (&request.key, request.token);
    prove(session, sql, key, token, complete, &[answer, kept]).await
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
    prove(session, sql, key, token, &sql.idempotency.abandon, &[]).await
}

/// Lets the lease run until `by` from now.
///
/// # Errors
///
/// Those of the session.
pub async fn extend_key<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    key: &IdempotencyKey,
    token: LeaseToken,
    by: Duration,
) -> Result<LeaseStatus, Error> {
    let until = [Value::Int(after(clock, by))];
    prove(session, sql, key, token, &sql.idempotency.extend, &until).await
}

/// Runs a statement that changes the row of this token; tells what it is where it is not.
async fn prove<S: Session>(
    session: &mut S,
    sql: &Statements,
    key: &IdempotencyKey,
    token: LeaseToken,
    change: &Sql,
    more: &[Value<'_>],
) -> Result<LeaseStatus, Error> {
    let [scope, name] = on(key);
    let holder = [scope, name, Value::Bytes(token.as_bytes())];
    let values: Vec<Value<'_>> = holder.iter().chain(more).copied().collect();
    if session.execute(change, &values).await? > 0 {
        return Ok(LeaseStatus::Ours);
    }
    let sql = &sql.idempotency.owner;
    let found = session.fetch(sql, &holder, &[Cell::Int]).await?;
    Ok(owner(found.first().map(|row| row.is(0))))
}

/// Deletes up to `rows` keys, and up to as many inbox ids, whose retention has passed.
///
/// # Errors
///
/// Those of the session.
pub async fn prune_keys<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    rows: u32,
) -> Result<u64, Error> {
    let (sql, values) = (
        &sql.idempotency,
        [Value::Int(now(clock)), Value::Int(rows.into())],
    );
    let keys = session.execute(&sql.prune_keys, &values).await?;
    Ok(keys + session.execute(&sql.prune_inbox, &values).await?)
}

/// Accepts a message, once; in the caller's transaction.
///
/// # Errors
///
/// Those of the session.
pub async fn accept<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    message: &InboxMessage,
) -> Result<Accepted, Error> {
    let sql = &sql.idempotency;
    let print = message.fingerprint.as_ref();
    let [source, id] = on(&message.key);
    let values = [
        source,
        id,
        Value::bytes(print.map(|print| &print.as_bytes()[..])),
        Value::Int(now(clock)),
        Value::Int(after(clock, message.retention)),
    ];
    if session.execute(&sql.accept, &values).await? > 0 {
        return Ok(Accepted::First);
    }
    let look = &sql.accepted;
    let mut found = session.fetch(look, &[source, id], &[Cell::Bytes]).await?;
    accepted(found.pop().map(InboxRow::read), message.fingerprint)
}
