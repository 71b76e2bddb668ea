//! Settles, extensions and releases.

use super::{Sql, TableNames, sql};

/// The statements after a claim.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SettleStatements {
    /// `?1` a JSON array of `[seq, token in hex, kind, microseconds, text or null, reason or null]`
    /// (see [`Kind`](crate::sql::Kind)) · `?2` now · `?3` what publishing does: 0 keeps the row in
    /// the history, 5 deletes it. Returns `seq` and token of each row that it settled. A trigger
    /// moves the terminal ones.
    pub settle: Sql,
    /// `?1` a JSON array of `[seq, token in hex]` · `?2` the lease's new end. Returns `seq` and
    /// token of each row that it extended.
    pub extend: Sql,
    /// `?1` a JSON array of `seq`. Returns, for each that is open, its `seq` and whether it is
    /// under a lease.
    pub held: Sql,
    /// `?1` token · `?2` now. Releases all rows under an unexpired lease with this token.
    pub release_claim: Sql,
}

impl SettleStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            settle: sql(names, SETTLE),
            extend: sql(names, EXTEND),
            held: sql(
                names,
                "SELECT seq, lease_until IS NOT NULL FROM {~events} \
                 WHERE seq IN (SELECT value FROM json_each(?1))",
            ),
            release_claim: sql(names, RELEASE_CLAIM),
        }
    }
}

const SETTLE: &str = "WITH batch AS ( \
       SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS token, \
              json_extract(value, '$[2]') AS kind, json_extract(value, '$[3]') AS after, \
              json_extract(value, '$[4]') AS note, json_extract(value, '$[5]') AS reason \
       FROM json_each(?1)) \
     UPDATE {~events} AS e SET \
       attempts = CASE WHEN batch.kind IN (2, 3) THEN max(e.attempts - 1, 0) ELSE e.attempts END, \
       available_at = CASE WHEN batch.kind IN (1, 2) THEN ?2 + batch.after \
                           WHEN batch.kind = 3 AND e.shape <> 2 THEN ?2 ELSE e.available_at END, \
       shape = CASE WHEN batch.kind IN (1, 2, 3) AND e.shape <> 2 THEN 1 ELSE e.shape END, \
       last_error = coalesce(batch.note, e.last_error), \
       outcome = CASE batch.kind WHEN 0 THEN ?3 WHEN 4 THEN 4 END, \
       reason = batch.reason, settled_at = CASE WHEN batch.kind IN (0, 4) THEN ?2 END, \
       lease_until = NULL \
     FROM batch WHERE e.seq = batch.seq AND hex(e.lease_token) = batch.token \
       AND e.lease_until IS NOT NULL \
     RETURNING seq, lease_token";

const EXTEND: &str = "WITH batch AS ( \
       SELECT json_extract(value, '$[0]') AS seq, json_extract(value, '$[1]') AS token \
       FROM json_each(?1)) \
     UPDATE {~events} AS e SET lease_until = ?2 \
     FROM batch WHERE e.seq = batch.seq AND hex(e.lease_token) = batch.token \
       AND e.lease_until IS NOT NULL \
     RETURNING seq, lease_token";

const RELEASE_CLAIM: &str = "UPDATE {~events} SET \
       attempts = max(attempts - 1, 0), \
       available_at = CASE WHEN shape <> 2 THEN ?2 ELSE available_at END, \
       shape = CASE WHEN shape <> 2 THEN 1 ELSE shape END, \
       lease_until = NULL \
     WHERE lease_token = ?1 AND lease_until > ?2";
