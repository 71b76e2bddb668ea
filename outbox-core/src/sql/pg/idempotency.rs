//! Idempotency keys and inbox ids. All but `accept` and `accepted` run in autocommit mode.

use super::sql;
use crate::sql::{Sql, TableNames};

/// Statements on idempotency keys and inbox ids.
///
/// `$1` and `$2` are the scope and the key (or the source and the id).
#[derive(Debug)]
#[non_exhaustive]
pub struct IdempotencySql {
    /// `$3` fingerprint, `$4` token, `$5` µs of the lease, `$6` µs of the retention. Changes one row
    /// where the run starts, else none.
    pub begin: Sql,
    /// `$3` fingerprint, `$4` token. The columns of [`KeyRow`](crate::sql::KeyRow); none where a run
    /// could start by now.
    pub look: Sql,
    /// `$3` token, `$4` answer, `$5` µs of the retention.
    pub complete: Sql,
    /// `$3` token.
    pub abandon: Sql,
    /// `$3` token, `$4` µs.
    pub extend: Sql,
    /// `$3` token. Whether another has the key; none where nobody has.
    pub owner: Sql,
    /// `$3` fingerprint or null, `$4` µs of the retention. Changes one row where the message is new,
    /// else none, and holds the row until the end of the transaction.
    pub accept: Sql,
    /// The fingerprint.
    pub accepted: Sql,
    /// `$1` most rows.
    pub prune_keys: Sql,
    /// `$1` most rows.
    pub prune_inbox: Sql,
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

const LOOK: &str = "SELECT fingerprint = $3, answer,
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

const OWNER: &str = "SELECT token <> $3 FROM {idempotency} WHERE scope = $1 AND key = $2";

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
