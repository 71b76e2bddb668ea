//! Statements on destinations: holds, policies, blocked keys.

use super::named;
use crate::sql::{DestinationSql, TableNames};

pub(super) fn destinations(names: &TableNames) -> DestinationSql {
    let sql = |template: &str| named(names, template);
    DestinationSql {
        hold: sql(
            "INSERT INTO {~destinations} (destination, held_until, reason) \
             VALUES (:destination, :now + :period, :reason) \
             ON CONFLICT (destination) DO UPDATE SET \
               reason = CASE WHEN disabled <> 0 OR held_until >= excluded.held_until \
                        THEN reason ELSE excluded.reason END, \
               held_until = CASE WHEN disabled <> 0 THEN held_until \
                            ELSE max(coalesce(held_until, 0), excluded.held_until) END",
        ),
        disable: sql(
            "INSERT INTO {~destinations} (destination, disabled, reason) \
             VALUES (:destination, 1, :reason) \
             ON CONFLICT (destination) DO UPDATE SET \
               disabled = 1, held_until = NULL, reason = excluded.reason",
        ),
        free: sql(
            "UPDATE {~destinations} SET disabled = 0, held_until = NULL, reason = NULL \
             WHERE destination = :destination",
        ),
        set_policy: sql(
            "INSERT INTO {~destinations} (destination, policy) VALUES (:destination, :policy) \
             ON CONFLICT (destination) DO UPDATE SET policy = excluded.policy",
        ),
        lift_blocks: Some(sql(
            "DELETE FROM {~blocked} WHERE destination = :destination",
        )),
        list: sql(
            "SELECT destination, policy, CASE WHEN held_until > :now THEN held_until END, \
               disabled <> 0, CASE WHEN disabled <> 0 OR held_until > :now THEN reason END \
             FROM {~destinations} \
             WHERE destination > :destination \
               AND (disabled <> 0 OR held_until > :now OR policy <> 'skip') \
             ORDER BY destination LIMIT :rows",
        ),
        blocked: sql("SELECT destination, \"key\", seq, since FROM {~blocked} \
             WHERE (destination, \"key\") > (:destination, :key) \
             ORDER BY destination, \"key\" LIMIT :rows"),
    }
}
