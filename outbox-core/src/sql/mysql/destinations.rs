//! Statements on destinations: holds, policies (set in a transaction), blocked keys.

use super::named;
use crate::sql::{DestinationSql, TableNames};

pub(super) fn destinations(names: &TableNames) -> DestinationSql {
    let sql = |template: &str| named(names, template);
    DestinationSql {
        hold: sql(
            "INSERT INTO {destinations} (destination, hold_until, reason) \
             VALUES (:destination, :now + :period, :reason) \
             ON DUPLICATE KEY UPDATE \
               reason = IF(disabled = 1 OR COALESCE(hold_until, 0) >= VALUES(hold_until), \
                 reason, VALUES(reason)), \
               hold_until = IF(disabled = 1, hold_until, \
                 GREATEST(COALESCE(hold_until, 0), VALUES(hold_until)))",
        ),
        disable: sql(
            "INSERT INTO {destinations} (destination, disabled, reason) \
             VALUES (:destination, 1, :reason) \
             ON DUPLICATE KEY UPDATE disabled = 1, hold_until = NULL, reason = VALUES(reason)",
        ),
        free: sql(
            "UPDATE {destinations} SET disabled = 0, hold_until = NULL, reason = NULL \
             WHERE destination = :destination",
        ),
        set_policy: sql(
            "INSERT INTO {destinations} (destination, dead_head) VALUES (:destination, :policy) \
             ON DUPLICATE KEY UPDATE dead_head = VALUES(dead_head)",
        ),
        lift_blocks: Some(sql(
            "DELETE FROM {blocked} WHERE destination = :destination",
        )),
        list: sql(
            "SELECT destination, dead_head, IF(hold_until > :now, hold_until, NULL), disabled, \
               IF(disabled = 1 OR hold_until > :now, reason, NULL) \
             FROM {destinations} \
             WHERE destination > :destination \
               AND (disabled = 1 OR hold_until > :now OR dead_head <> 'skip') \
             ORDER BY destination LIMIT :rows",
        ),
        blocked: sql("SELECT destination, `key`, seq, since FROM {blocked} \
             WHERE destination > :destination OR (destination = :destination AND `key` > :key) \
             ORDER BY destination, `key` LIMIT :rows"),
    }
}
