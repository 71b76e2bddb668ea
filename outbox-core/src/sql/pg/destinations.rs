//! Statements on destinations: holds, policies, blocked keys.

use super::named;
use crate::sql::{DestinationSql, TableNames};

pub(super) fn destinations(names: &TableNames) -> DestinationSql {
    let sql = |template: &str| named(names, template);
    DestinationSql {
        hold: sql(
            "INSERT INTO {destinations} AS d (destination, hold_until, reason) \
             SELECT :destination, now() + :period::bigint * interval '1 microsecond', :reason \
             WHERE :period > 0 \
             ON CONFLICT (destination) DO UPDATE \
             SET hold_until = EXCLUDED.hold_until, reason = EXCLUDED.reason \
             WHERE d.hold_until IS NULL OR d.hold_until < EXCLUDED.hold_until",
        ),
        disable: sql(
            "INSERT INTO {destinations} AS d (destination, hold_until, reason) \
             VALUES (:destination, 'infinity', :reason) \
             ON CONFLICT (destination) DO UPDATE \
             SET hold_until = EXCLUDED.hold_until, reason = EXCLUDED.reason",
        ),
        free: sql(
            "UPDATE {destinations} SET hold_until = NULL, reason = NULL \
             WHERE destination = :destination",
        ),
        set_policy: sql("WITH lifted AS ( \
               DELETE FROM {blocked} WHERE destination = :destination AND :policy = 'skip') \
             INSERT INTO {destinations} (destination, dead_head) VALUES (:destination, :policy) \
             ON CONFLICT (destination) DO UPDATE SET dead_head = EXCLUDED.dead_head"),
        lift_blocks: None,
        list: sql("SELECT destination, dead_head, \
               CASE WHEN hold_until > now() AND hold_until < 'infinity' \
                 THEN (extract(epoch FROM hold_until) * 1000000)::bigint END, \
               COALESCE(hold_until = 'infinity', false)::int::bigint, \
               CASE WHEN hold_until > now() THEN reason END \
             FROM {destinations} \
             WHERE destination > :destination AND (dead_head <> 'skip' OR hold_until > now()) \
             ORDER BY destination LIMIT :rows"),
        blocked: sql(
            "SELECT destination, key, seq, (extract(epoch FROM since) * 1000000)::bigint \
             FROM {blocked} \
             WHERE (destination, key) > (:destination, :key) \
             ORDER BY destination, key LIMIT :rows",
        ),
    }
}
