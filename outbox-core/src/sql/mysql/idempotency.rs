//! Statements on idempotency keys and inbox ids.
//!
//! The server has no upsert with a condition: a row is inserted where there is none, else updated
//! where it is free.

use super::named;
use crate::sql::{IdempotencySql, TableNames};

pub(super) fn idempotency(names: &TableNames) -> IdempotencySql {
    let sql = |template: &str| named(names, &template.replace(":free", FREE));
    IdempotencySql {
        begin: vec![
            sql("INSERT IGNORE INTO {idempotency} \
                   (scope, `key`, fingerprint, token, lease_until, expires_at) \
                 VALUES (:scope, :key, :print, :token, :now + :lease, :now + :kept)"),
            sql(
                "UPDATE {idempotency} SET fingerprint = :print, token = :token, \
                   lease_until = :now + :lease, answer = NULL, expires_at = :now + :kept \
                 WHERE scope = :scope AND `key` = :key AND :free",
            ),
        ],
        look: sql(
            "SELECT fingerprint = :print, lease_until - :now, answer FROM {idempotency} \
             WHERE scope = :scope AND `key` = :key AND NOT :free",
        ),
        complete: sql(
            "UPDATE {idempotency} SET answer = :answer, lease_until = NULL, \
               expires_at = :now + :kept \
             WHERE scope = :scope AND `key` = :key AND token = :token",
        ),
        abandon: sql("DELETE FROM {idempotency} \
             WHERE scope = :scope AND `key` = :key AND token = :token AND answer IS NULL"),
        extend: sql("UPDATE {idempotency} SET lease_until = :now + :period \
             WHERE scope = :scope AND `key` = :key AND token = :token AND answer IS NULL"),
        owner: sql(
            "SELECT token <> :token FROM {idempotency} WHERE scope = :scope AND `key` = :key",
        ),
        accept: sql(
            "INSERT IGNORE INTO {inbox} (source, id, fingerprint, expires_at) \
             VALUES (:scope, :key, :print, :now + :kept)",
        ),
        // A locking read sees what is committed, whatever the transaction's snapshot.
        accepted: sql("SELECT expires_at <= :now, fingerprint FROM {inbox} \
             WHERE source = :scope AND id = :key LOCK IN SHARE MODE"),
        renew: Some(sql(
            "UPDATE {inbox} SET fingerprint = :print, expires_at = :now + :kept \
             WHERE source = :scope AND id = :key",
        )),
        prune_keys: sql("DELETE FROM {idempotency} \
             WHERE expires_at <= :now AND (answer IS NOT NULL OR lease_until <= :now) \
             ORDER BY expires_at LIMIT :rows"),
        prune_inbox: sql(
            "DELETE FROM {inbox} WHERE expires_at <= :now ORDER BY expires_at LIMIT :rows",
        ),
    }
}

/// The retention has passed and nobody runs; or the same request, whose run is the caller's own or
/// has lost its lease.
const FREE: &str = "( \
    (expires_at <= :now AND (answer IS NOT NULL OR lease_until <= :now)) \
    OR (fingerprint = :print AND answer IS NULL AND (token = :token OR lease_until <= :now)))";
