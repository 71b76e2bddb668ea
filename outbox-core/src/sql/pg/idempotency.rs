//! Statements on idempotency keys and inbox ids.

use super::named;
use crate::sql::{IdempotencySql, TableNames};

pub(super) fn idempotency(names: &TableNames) -> IdempotencySql {
    let sql = |template: &str| named(names, &template.replace(":free", FREE));
    IdempotencySql {
        begin: vec![sql(BEGIN)],
        look: sql("SELECT (fingerprint = :print)::int::bigint, \
               (extract(epoch FROM lease_until - now()) * 1000000)::bigint, answer \
             FROM {idempotency} k \
             WHERE scope = :scope AND key = :key AND NOT :free"),
        complete: sql(
            "UPDATE {idempotency} SET answer = :answer, lease_until = NULL, \
               expires_at = now() + :kept::bigint * interval '1 microsecond' \
             WHERE scope = :scope AND key = :key AND token = :token",
        ),
        abandon: sql("DELETE FROM {idempotency} \
             WHERE scope = :scope AND key = :key AND token = :token AND answer IS NULL"),
        extend: sql("UPDATE {idempotency} \
             SET lease_until = now() + :period::bigint * interval '1 microsecond' \
             WHERE scope = :scope AND key = :key AND token = :token AND answer IS NULL"),
        owner: sql("SELECT (token <> :token)::int::bigint FROM {idempotency} \
             WHERE scope = :scope AND key = :key"),
        accept: sql(ACCEPT),
        accepted: sql(
            "SELECT 0::bigint, fingerprint FROM {inbox} WHERE source = :scope AND id = :key",
        ),
        renew: None,
        prune_keys: sql("DELETE FROM {idempotency} WHERE ctid = ANY (ARRAY( \
               SELECT ctid FROM {idempotency} \
               WHERE expires_at <= now() AND (answer IS NOT NULL OR lease_until <= now()) \
               ORDER BY expires_at LIMIT :rows FOR UPDATE SKIP LOCKED))"),
        prune_inbox: sql("DELETE FROM {inbox} WHERE ctid = ANY (ARRAY( \
               SELECT ctid FROM {inbox} WHERE expires_at <= now() \
               ORDER BY expires_at LIMIT :rows FOR UPDATE SKIP LOCKED))"),
    }
}

/// The retention has passed and nobody runs; or the same request, whose run is the caller's own or
/// has lost its lease.
const FREE: &str = "( \
    k.expires_at <= now() AND (k.answer IS NOT NULL OR k.lease_until <= now()) \
    OR k.fingerprint = :print AND k.answer IS NULL \
       AND (k.token = :token OR k.lease_until <= now()))";

const BEGIN: &str = "INSERT INTO {idempotency} AS k
    (scope, key, fingerprint, token, lease_until, expires_at)
VALUES (:scope, :key, :print, :token, now() + :lease::bigint * interval '1 microsecond',
    now() + :kept::bigint * interval '1 microsecond')
ON CONFLICT (scope, key) DO UPDATE
SET fingerprint = EXCLUDED.fingerprint, token = EXCLUDED.token,
    lease_until = EXCLUDED.lease_until, answer = NULL, expires_at = EXCLUDED.expires_at
WHERE :free";

// In a transaction now() is the time of its begin.
const ACCEPT: &str = "INSERT INTO {inbox} AS i (source, id, fingerprint, expires_at)
VALUES (:scope, :key, :print, statement_timestamp() + :kept::bigint * interval '1 microsecond')
ON CONFLICT (source, id) DO UPDATE
SET fingerprint = EXCLUDED.fingerprint, expires_at = EXCLUDED.expires_at
WHERE i.expires_at <= statement_timestamp()";
