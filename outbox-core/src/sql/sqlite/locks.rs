//! Statements on leased locks.

use super::named;
use crate::sql::{LockSql, TableNames};

pub(super) fn locks(names: &TableNames) -> LockSql {
    let sql = |template: &str| named(names, template);
    LockSql {
        acquire: vec![sql("INSERT INTO {~locks} AS l (name, token, held_until) \
             VALUES (:name, :token, :now + :lease) \
             ON CONFLICT (name) DO UPDATE \
             SET token = excluded.token, held_until = excluded.held_until \
             WHERE l.held_until <= :now OR l.token = excluded.token")],
        left: sql("SELECT held_until - :now FROM {~locks} WHERE name = :name"),
        extend: sql(
            "UPDATE {~locks} SET held_until = :now + :period WHERE name = :name AND token = :token",
        ),
        unlock: sql(
            "UPDATE {~locks} SET token = NULL, held_until = :now + :period \
             WHERE name = :name AND token = :token",
        ),
        owner: sql("SELECT coalesce(token <> :token, 0) FROM {~locks} WHERE name = :name"),
    }
}
