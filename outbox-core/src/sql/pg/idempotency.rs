//! Idempotency keys and inbox ids. All but `accept` and `accepted` run in autocommit mode.

use std::time::Duration;

use super::{Statements, sql};
use crate::sql::{
    Cell, InboxRow, KeyRow, Session, Sql, TableNames, Value, accepted, micros, owner,
};
use crate::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, IdempotencyKey, InboxMessage,
    LeaseStatus, LeaseToken,
};

/// Statements on idempotency keys and inbox ids.
///
/// `$1` and `$2` are the scope and the key (or the source and the id).
#[derive(Debug)]
pub(super) struct IdempotencySql {
    /// `$3` fingerprint, `$4` token, `$5` µs of the lease, `$6` µs of the retention. Changes one row
    /// where the run starts, else none.
    begin: Sql,
    /// `$3` fingerprint, `$4` token. The columns of [`KeyRow`](crate::sql::KeyRow); none where a run
    /// could start by now.
    look: Sql,
    /// `$3` token, `$4` answer, `$5` µs of the retention.
    complete: Sql,
    /// `$3` token.
    abandon: Sql,
    /// `$3` token, `$4` µs.
    extend: Sql,
    /// `$3` token. Whether another has the key; none where nobody has.
    owner: Sql,
    /// `$3` fingerprint or null, `$4` µs of the retention. Changes one row where the message is new,
    /// else none, and holds the row until the end of the transaction.
    accept: Sql,
    /// The fingerprint.
    accepted: Sql,
    /// `$1` most rows.
    prune_keys: Sql,
    /// `$1` most rows.
    prune_inbox: Sql,
}

impl IdempotencySql {
    pub(super) fn new(names: &TableNames) -> Self {
        let fill = |template: &str| sql(names, &template.replace(":free", FREE));
        Self {
            begin: fill(BEGIN),
            look: fill(LOOK),
            complete: fill(COMPLETE),
            abandon: fill(ABANDON),
            extend: fill(EXTEND),
            owner: fill(OWNER),
            accept: fill(ACCEPT),
            accepted: fill(ACCEPTED),
            prune_keys: fill(PRUNE_KEYS),
            prune_inbox: fill(PRUNE_INBOX),
        }
    }
}

/// The retention has passed and nobody runs; or the same request, whose run is the caller's own or
/// has lost its lease.
const FREE: &str = "(
    k.expires_at <= now() AND (k.answer IS NOT NULL OR k.lease_until <= now())
    OR k.fingerprint = $3 AND k.answer IS NULL AND (k.token = $4 OR k.lease_until <= now()))";

const BEGIN: &str = "INSERT INTO {idempotency} AS k
    (scope, key, fingerprint, token, lease_until, expires_at)
VALUES ($1, $2, $3, $4, now() + $5::bigint * interval '1 microsecond',
    now() + $6::bigint * interval '1 microsecond')
ON CONFLICT (scope, key) DO UPDATE
SET fingerprint = EXCLUDED.fingerprint, token = EXCLUDED.token,
    lease_until = EXCLUDED.lease_until, answer = NULL, expires_at = EXCLUDED.expires_at
WHERE :free";

const LOOK: &str = "SELECT (fingerprint = $3)::int::bigint, answer,
    (extract(epoch FROM lease_until - now()) * 1000000)::bigint
FROM {idempotency} k
WHERE scope = $1 AND key = $2 AND NOT :free";

const COMPLETE: &str = "UPDATE {idempotency}
SET answer = $4, lease_until = NULL, expires_at = now() + $5::bigint * interval '1 microsecond'
WHERE scope = $1 AND key = $2 AND token = $3";

const ABANDON: &str = "DELETE FROM {idempotency}
WHERE scope = $1 AND key = $2 AND token = $3 AND answer IS NULL";

const EXTEND: &str = "UPDATE {idempotency}
SET lease_until = now() + $4::bigint * interval '1 microsecond'
WHERE scope = $1 AND key = $2 AND token = $3 AND answer IS NULL";

const OWNER: &str =
    "SELECT (token <> $3)::int::bigint FROM {idempotency} WHERE scope = $1 AND key = $2";

// In a transaction now() is the time of its begin.
const ACCEPT: &str = "INSERT INTO {inbox} AS i (source, id, fingerprint, expires_at)
VALUES ($1, $2, $3, statement_timestamp() + $4::bigint * interval '1 microsecond')
ON CONFLICT (source, id) DO UPDATE
SET fingerprint = EXCLUDED.fingerprint, expires_at = EXCLUDED.expires_at
WHERE i.expires_at <= statement_timestamp()";

const ACCEPTED: &str = "SELECT fingerprint FROM {inbox} WHERE source = $1 AND id = $2";

const PRUNE_KEYS: &str = "DELETE FROM {idempotency}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {idempotency}
    WHERE expires_at <= now() AND (answer IS NOT NULL OR lease_until <= now())
    ORDER BY expires_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED))";

const PRUNE_INBOX: &str = "DELETE FROM {inbox}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {inbox}
    WHERE expires_at <= now()
    ORDER BY expires_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED))";

fn on(key: &IdempotencyKey) -> [Value<'_>; 2] {
    [Value::Text(key.scope()), Value::Text(key.key())]
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
    let [scope, key] = on(&request.key);
    let print = Value::Bytes(request.fingerprint.as_bytes());
    let token = Value::Id(*request.token.as_bytes());
    let (lease, kept) = (period(request.lease), period(request.retention));
    let begin = [scope, key, print, token, lease, kept];
    if session.execute(&sql.begin, &begin).await? > 0 {
        return Ok(Begun::Started);
    }
    let cells = [Cell::Int, Cell::Bytes, Cell::Int];
    let look = [scope, key, print, token];
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
    let more = [Value::Bytes(&request.answer), period(request.retention)];
    let (key, complete) = (&request.key, &sql.idempotency.complete);
    prove(session, sql, key, request.token, complete, &more).await
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
    key: &IdempotencyKey,
    token: LeaseToken,
    by: Duration,
) -> Result<LeaseStatus, Error> {
    let extend = &sql.idempotency.extend;
    prove(session, sql, key, token, extend, &[period(by)]).await
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
    let holder = [scope, name, Value::Id(*token.as_bytes())];
    let values: Vec<Value<'_>> = holder.iter().chain(more).copied().collect();
    if session.execute(change, &values).await? > 0 {
        return Ok(LeaseStatus::Ours);
    }
    let sql = &sql.idempotency.owner;
    let found = session.fetch(sql, &holder, &[Cell::Int]).await?;
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
    let print = message.fingerprint.as_ref();
    let print = Value::bytes(print.map(|print| &print.as_bytes()[..]));
    let [source, id] = on(&message.key);
    let values = [source, id, print, period(message.retention)];
    if session.execute(&sql.accept, &values).await? > 0 {
        return Ok(Accepted::First);
    }
    let look = &sql.accepted;
    let mut found = session.fetch(look, &[source, id], &[Cell::Bytes]).await?;
    accepted(found.pop().map(InboxRow::read), message.fingerprint)
}
