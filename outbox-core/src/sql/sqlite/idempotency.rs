//! Idempotency keys and inbox ids.

use super::{Sql, TableNames, sql};

/// Statements on idempotency keys and inbox ids.
///
/// `?1` and `?2` are the scope and the key (or the source and the id).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdempotencyStatements {
    /// `?3` fingerprint · `?4` token · `?5` now · `?6` the lease's end · `?7` the retention's end.
    /// Changes one row where the run starts, else none.
    pub begin: Sql,
    /// `?3` fingerprint · `?4` token · `?5` now. Returns the columns of
    /// [`KeyRow`](crate::sql::KeyRow); nothing where a run could start by now.
    pub look: Sql,
    /// `?3` token · `?4` answer · `?5` the retention's end.
    pub complete: Sql,
    /// `?3` token.
    pub abandon: Sql,
    /// `?3` token · `?4` the lease's end.
    pub extend: Sql,
    /// `?3` token. Returns whether another has the key; nothing where nobody has.
    pub owner: Sql,
    /// `?3` fingerprint or null · `?4` now · `?5` the retention's end. Changes one row where the
    /// message is new, else none.
    pub accept: Sql,
    /// Returns the fingerprint.
    pub accepted: Sql,
    /// `?1` now · `?2` rows.
    pub prune_keys: Sql,
    /// `?1` now · `?2` rows.
    pub prune_inbox: Sql,
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
