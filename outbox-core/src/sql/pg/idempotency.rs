//! Statements on idempotency keys and inbox ids.

use super::functions::Function;
use super::named;
use crate::sql::{IdempotencySql, TableNames};

pub(super) fn idempotency(names: &TableNames) -> IdempotencySql {
    let sql = |template: &str| named(names, template);
    IdempotencySql {
        begin: vec![sql(&BEGIN.replace(":free", FREE))],
        look: sql("SELECT * FROM {key_look_v1}(:scope, :key, :token, :print)"),
        complete: sql("SELECT FROM {key_complete_v1}(:scope, :key, :token, :answer, :kept)"),
        abandon: sql("SELECT FROM {key_abandon_v1}(:scope, :key, :token)"),
        extend: sql("SELECT FROM {key_extend_v1}(:scope, :key, :token, :period)"),
        owner: sql("SELECT * FROM {key_owner_v1}(:scope, :key, :token)"),
        accept: sql(ACCEPT),
        accepted: sql("SELECT 0::bigint, print FROM {inbox_look_v1}(:scope, :key)"),
        renew: None,
        prune_keys: sql("SELECT FROM {prune_keys_v1}(:rows)"),
        prune_inbox: sql("SELECT FROM {prune_inbox_v1}(:rows)"),
    }
}

const ONE_KEY: &str = "text, text, uuid";

/// What finds rows without an insert. `$1` scope, `$2` key, `$3` token; of the prunes, `$1` rows.
pub(super) fn functions() -> Vec<Function> {
    let free = FREE.replace(":print", "$4").replace(":token", "$3");
    let look = LOOK.replace(":free", &free);
    vec![
        Function::new(
            "key_look_v1",
            "text, text, uuid, bytea",
            "same bigint, remaining bigint, answer bytea",
            &look,
        ),
        Function::new(
            "key_complete_v1",
            "text, text, uuid, bytea, bigint",
            DONE,
            COMPLETE,
        ),
        Function::new("key_abandon_v1", ONE_KEY, DONE, ABANDON),
        Function::new("key_extend_v1", "text, text, uuid, bigint", DONE, EXTEND),
        Function::new("key_owner_v1", ONE_KEY, "other bigint", OWNER),
        Function::new("inbox_look_v1", "text, text", "print bytea", ACCEPTED),
        Function::new("prune_keys_v1", "bigint", DONE, PRUNE_KEYS),
        Function::new("prune_inbox_v1", "bigint", DONE, PRUNE_INBOX),
    ]
}

/// A row for each that was changed.
const DONE: &str = "changed integer";

const LOOK: &str = "SELECT (fingerprint = $4)::int::bigint,
    (extract(epoch FROM lease_until - now()) * 1000000)::bigint, answer
FROM {idempotency} k
WHERE scope = $1 AND key = $2 AND NOT :free";

const COMPLETE: &str = "UPDATE {idempotency}
SET answer = $4, lease_until = NULL, expires_at = now() + $5 * interval '1 microsecond'
WHERE scope = $1 AND key = $2 AND token = $3
RETURNING 1";

const ABANDON: &str = "DELETE FROM {idempotency}
WHERE scope = $1 AND key = $2 AND token = $3 AND answer IS NULL
RETURNING 1";

const EXTEND: &str = "UPDATE {idempotency}
SET lease_until = now() + $4 * interval '1 microsecond'
WHERE scope = $1 AND key = $2 AND token = $3 AND answer IS NULL
RETURNING 1";

const OWNER: &str = "SELECT (token <> $3)::int::bigint FROM {idempotency}
WHERE scope = $1 AND key = $2";

const ACCEPTED: &str = "SELECT fingerprint FROM {inbox} WHERE source = $1 AND id = $2";

const PRUNE_KEYS: &str = "DELETE FROM {idempotency} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {idempotency}
    WHERE expires_at <= now() AND (answer IS NOT NULL OR lease_until <= now())
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING 1";

const PRUNE_INBOX: &str = "DELETE FROM {inbox} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {inbox} WHERE expires_at <= now()
    ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING 1";

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
