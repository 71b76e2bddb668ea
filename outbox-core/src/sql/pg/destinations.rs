//! Holds, policies and blocked keys. Each statement runs in autocommit mode.

use super::sql;
use crate::sql::{Sql, TableNames};

/// Statements on destinations.
#[derive(Debug)]
#[non_exhaustive]
pub struct DestinationSql {
    /// `$1` destination, `$2` µs, `$3` reason.
    pub hold: Sql,
    /// `$1` destination, `$2` reason.
    pub disable: Sql,
    /// `$1` destination.
    pub free: Sql,
    /// `$1` destination, `$2` the policy's name. `skip` lifts the destination's blocks.
    pub set_policy: Sql,
    /// `$1` after this destination, `$2` most rows. `destination`, `dead_head`, `hold_until` or null
    /// where nothing or an operator holds it, `disabled`, `reason`.
    pub list: Sql,
    /// `$1` and `$2` after this destination and key, `$3` most rows. `destination`, `key`, `seq`,
    /// `since`.
    pub blocked_keys: Sql,
}

impl DestinationSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            hold: sql(names, HOLD),
            disable: sql(names, DISABLE),
            free: sql(names, FREE),
            set_policy: sql(names, SET_POLICY),
            list: sql(names, LIST),
            blocked_keys: sql(names, BLOCKED_KEYS),
        }
    }
}

const HOLD: &str = "INSERT INTO {destinations} AS d (destination, hold_until, reason)
SELECT $1, now() + $2::bigint * interval '1 microsecond', $3 WHERE $2 > 0
ON CONFLICT (destination) DO UPDATE
SET hold_until = EXCLUDED.hold_until, reason = EXCLUDED.reason
WHERE d.hold_until IS NULL OR d.hold_until < EXCLUDED.hold_until";

const DISABLE: &str = "INSERT INTO {destinations} AS d (destination, hold_until, reason)
VALUES ($1, 'infinity', $2)
ON CONFLICT (destination) DO UPDATE
SET hold_until = EXCLUDED.hold_until, reason = EXCLUDED.reason";

const FREE: &str =
    "UPDATE {destinations} SET hold_until = NULL, reason = NULL WHERE destination = $1";

const SET_POLICY: &str = "WITH lifted AS (
    DELETE FROM {blocked} WHERE destination = $1 AND $2 = 'skip'
)
INSERT INTO {destinations} (destination, dead_head) VALUES ($1, $2)
ON CONFLICT (destination) DO UPDATE SET dead_head = EXCLUDED.dead_head";

const LIST: &str = "SELECT destination, dead_head,
    CASE WHEN hold_until > now() AND hold_until < 'infinity' THEN hold_until END,
    COALESCE(hold_until = 'infinity', false),
    CASE WHEN hold_until > now() THEN reason END
FROM {destinations}
WHERE destination > $1 AND (dead_head <> 'skip' OR hold_until > now())
ORDER BY destination
LIMIT $2";

const BLOCKED_KEYS: &str = "SELECT destination, key, seq, since FROM {blocked}
WHERE (destination, key) > ($1, $2)
ORDER BY destination, key
LIMIT $3";
