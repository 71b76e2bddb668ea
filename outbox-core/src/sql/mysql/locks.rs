//! Statements on leased locks.

use super::named;
use crate::sql::{LockSql, TableNames};

pub(super) fn locks(names: &TableNames) -> LockSql {
    let sql = |template: &str| named(names, template);
    LockSql {
        acquire: vec![
            sql(
                "UPDATE {locks} SET token = :token, held_until = :now + :lease \
                 WHERE name = :name AND (held_until <= :now OR token = :token)",
            ),
            sql("INSERT IGNORE INTO {locks} (name, token, held_until) \
                 VALUES (:name, :token, :now + :lease)"),
        ],
        left: sql("SELECT held_until - :now FROM {locks} WHERE name = :name"),
        extend: sql(
            "UPDATE {locks} SET held_until = :now + :period WHERE name = :name AND token = :token",
        ),
        unlock: sql(
            "UPDATE {locks} SET held_until = :now + :period, token = NULL \
             WHERE name = :name AND token = :token",
        ),
        owner: sql("SELECT COALESCE(token <> :token, 0) FROM {locks} WHERE name = :name"),
    }
}
