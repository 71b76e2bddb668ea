//! Leased locks.

use super::{Sql, TableNames, sql};

/// Statements on leased locks; `?1` is the name.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LockStatements {
    /// `?2` token · `?3` the lease's end · `?4` now. Changes one row where the lock is taken, else
    /// none.
    pub acquire: Sql,
    /// `?2` now. Returns how many µs the lock stays closed.
    pub left: Sql,
    /// `?2` token · `?3` the lease's end.
    pub extend: Sql,
    /// `?2` token · `?3` the cool-down's end.
    pub unlock: Sql,
    /// `?2` token. Returns whether another token holds the lock; nothing where there never was one.
    pub owner: Sql,
}

impl LockStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            acquire: sql(names, ACQUIRE),
            left: sql(
                names,
                "SELECT held_until - ?2 FROM {~locks} WHERE name = ?1",
            ),
            extend: sql(
                names,
                "UPDATE {~locks} SET held_until = ?3 WHERE name = ?1 AND token = ?2",
            ),
            unlock: sql(
                names,
                "UPDATE {~locks} SET token = NULL, held_until = ?3 WHERE name = ?1 AND token = ?2",
            ),
            owner: sql(
                names,
                "SELECT coalesce(token <> ?2, 0) FROM {~locks} WHERE name = ?1",
            ),
        }
    }
}

const ACQUIRE: &str = "INSERT INTO {~locks} AS l (name, token, held_until) VALUES (?1, ?2, ?3) \
     ON CONFLICT (name) DO UPDATE SET token = excluded.token, held_until = excluded.held_until \
     WHERE l.held_until <= ?4 OR l.token = excluded.token";
