//! Leased locks. Each statement runs in autocommit mode.

use super::sql;
use crate::sql::{Sql, TableNames};

/// Statements on leased locks; `$1` is the name, `$2` the token.
#[derive(Debug)]
#[non_exhaustive]
pub struct LockSql {
    /// `$3` µs of the lease. Changes one row where the lock is taken, else none.
    pub acquire: Sql,
    /// `$1` alone. How many µs the lock stays closed.
    pub left: Sql,
    /// `$3` µs.
    pub extend: Sql,
    /// `$3` µs of the cool-down.
    pub unlock: Sql,
    /// Whether another token holds the lock; none where there never was one.
    pub owner: Sql,
}

impl LockSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            acquire: sql(names, ACQUIRE),
            left: sql(names, LEFT),
            extend: sql(names, EXTEND),
            unlock: sql(names, UNLOCK),
            owner: sql(names, OWNER),
        }
    }
}

const ACQUIRE: &str = "INSERT INTO {locks} AS l (name, token, held_until)
VALUES ($1, $2, now() + $3::bigint * interval '1 microsecond')
ON CONFLICT (name) DO UPDATE SET token = EXCLUDED.token, held_until = EXCLUDED.held_until
WHERE l.held_until <= now() OR l.token = EXCLUDED.token";

const LEFT: &str = "SELECT (extract(epoch FROM held_until - now()) * 1000000)::bigint
FROM {locks} WHERE name = $1";

const EXTEND: &str = "UPDATE {locks} SET held_until = now() + $3::bigint * interval '1 microsecond'
WHERE name = $1 AND token = $2";

const UNLOCK: &str = "UPDATE {locks}
SET token = NULL, held_until = now() + $3::bigint * interval '1 microsecond'
WHERE name = $1 AND token = $2";

const OWNER: &str = "SELECT COALESCE(token <> $2, false) FROM {locks} WHERE name = $1";
