//! Destinations: holds, policies, blocked keys.

use super::{Sql, TableNames, sql};

/// The statements on destinations.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DestinationStatements {
    /// `?1` destination · `?2` until · `?3` reason. The later end stays; a disabled one stays as
    /// it is.
    pub hold: Sql,
    /// `?1` destination · `?2` reason.
    pub disable: Sql,
    /// `?1` destination.
    pub free: Sql,
    /// `?1` destination · `?2` policy.
    pub set_policy: Sql,
    /// `?1` destination: lifts its blocks.
    pub unblock: Sql,
    /// `?1` now · `?2` after this name, or null · `?3` rows. Returns destination, end of the hold or
    /// null, whether disabled, reason, policy.
    pub list: Sql,
    /// `?1` after this destination, or null · `?2` and key · `?3` rows. Returns destination, key,
    /// `seq`, since.
    pub blocked: Sql,
}

impl DestinationStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            hold: sql(
                names,
                "INSERT INTO {~destinations} (destination, held_until, reason) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (destination) DO UPDATE SET \
                   reason = CASE WHEN disabled <> 0 OR held_until >= excluded.held_until \
                            THEN reason ELSE excluded.reason END, \
                   held_until = CASE WHEN disabled <> 0 THEN held_until \
                                ELSE max(coalesce(held_until, 0), excluded.held_until) END",
            ),
            disable: sql(
                names,
                "INSERT INTO {~destinations} (destination, disabled, reason) VALUES (?1, 1, ?2) \
                 ON CONFLICT (destination) DO UPDATE SET \
                   disabled = 1, held_until = NULL, reason = excluded.reason",
            ),
            free: sql(
                names,
                "UPDATE {~destinations} SET disabled = 0, held_until = NULL, reason = NULL \
                 WHERE destination = ?1",
            ),
            set_policy: sql(
                names,
                "INSERT INTO {~destinations} (destination, policy) VALUES (?1, ?2) \
                 ON CONFLICT (destination) DO UPDATE SET policy = excluded.policy",
            ),
            unblock: sql(names, "DELETE FROM {~blocked_keys} WHERE destination = ?1"),
            list: sql(
                names,
                "SELECT destination, CASE WHEN held_until > ?1 THEN held_until END, disabled <> 0, \
                   reason, policy \
                 FROM {~destinations} \
                 WHERE (disabled <> 0 OR held_until > ?1 OR policy <> 'skip') \
                   AND (?2 IS NULL OR destination > ?2) \
                 ORDER BY destination LIMIT ?3",
            ),
            blocked: sql(
                names,
                "SELECT destination, \"key\", seq, since FROM {~blocked_keys} \
                 WHERE ?1 IS NULL OR (destination, \"key\") > (?1, ?2) \
                 ORDER BY destination, \"key\" LIMIT ?3",
            ),
        }
    }
}
