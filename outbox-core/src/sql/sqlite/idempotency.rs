//! Statements on idempotency keys and inbox ids.

use super::named;
use crate::sql::{IdempotencySql, TableNames};

pub(super) fn idempotency(names: &TableNames) -> IdempotencySql {
    let sql = |template: &str| named(names, &template.replace(":free", FREE));
    IdempotencySql {
        begin: vec![sql(BEGIN)],
        look: sql(
            "SELECT fingerprint = :print, lease_until - :now, answer FROM {~idempotency} k \
             WHERE scope = :scope AND \"key\" = :key AND NOT :free",
        ),
        complete: sql("UPDATE {~idempotency} \
             SET answer = :answer, lease_until = NULL, expires_at = :now + :kept \
             WHERE scope = :scope AND \"key\" = :key AND token = :token"),
        abandon: sql("DELETE FROM {~idempotency} \
             WHERE scope = :scope AND \"key\" = :key AND token = :token AND answer IS NULL"),
        extend: sql("UPDATE {~idempotency} SET lease_until = :now + :period \
             WHERE scope = :scope AND \"key\" = :key AND token = :token AND answer IS NULL"),
        owner: sql(
            "SELECT token <> :token FROM {~idempotency} WHERE scope = :scope AND \"key\" = :key",
        ),
        accept: sql(ACCEPT),
        accepted: sql("SELECT 0, fingerprint FROM {~inbox} WHERE source = :scope AND id = :key"),
        renew: None,
        prune_keys: sql("DELETE FROM {~idempotency} WHERE rowid IN ( \
               SELECT rowid FROM {~idempotency} \
               WHERE expires_at <= :now AND (answer IS NOT NULL OR lease_until <= :now) \
               ORDER BY expires_at LIMIT :rows)"),
        prune_inbox: sql("DELETE FROM {~inbox} WHERE (source, id) IN ( \
               SELECT source, id FROM {~inbox} WHERE expires_at <= :now \
               ORDER BY expires_at LIMIT :rows)"),
    }
}

/// The retention has passed and nobody runs; or the same request, whose run is the caller's own or
/// has lost its lease.
const FREE: &str = "( \
    k.expires_at <= :now AND (k.answer IS NOT NULL OR k.lease_until <= :now) \
    OR k.fingerprint = :print AND k.answer IS NULL \
       AND (k.token = :token OR k.lease_until <= :now))";

const BEGIN: &str = "INSERT INTO {~idempotency} AS k \
       (scope, \"key\", fingerprint, token, lease_until, expires_at) \
     VALUES (:scope, :key, :print, :token, :now + :lease, :now + :kept) \
     ON CONFLICT (scope, \"key\") DO UPDATE \
     SET fingerprint = excluded.fingerprint, token = excluded.token, \
       lease_until = excluded.lease_until, answer = NULL, expires_at = excluded.expires_at \
     WHERE :free";

const ACCEPT: &str = "INSERT INTO {~inbox} AS i (source, id, fingerprint, expires_at) \
     VALUES (:scope, :key, :print, :now + :kept) \
     ON CONFLICT (source, id) DO UPDATE \
     SET fingerprint = excluded.fingerprint, expires_at = excluded.expires_at \
     WHERE i.expires_at <= :now";
