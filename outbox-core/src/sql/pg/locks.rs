//! Statements on leased locks.

use super::named;
use crate::sql::{LockSql, TableNames};

pub(super) fn locks(names: &TableNames) -> LockSql {
    let sql = |template: &str| named(names, template);
    LockSql {
        acquire: vec![sql("INSERT INTO {locks} AS l (name, token, held_until)
VALUES (:name, :token, now() + :lease::bigint * interval '1 microsecond')
ON CONFLICT (name) DO UPDATE SET token = EXCLUDED.token, held_until = EXCLUDED.held_until
WHERE l.held_until <= now() OR l.token = EXCLUDED.token")],
        left: sql(
            "SELECT (extract(epoch FROM held_until - now()) * 1000000)::bigint
FROM {locks} WHERE name = :name",
        ),
        extend: sql("UPDATE {locks}
SET held_until = now() + :period::bigint * interval '1 microsecond'
WHERE name = :name AND token = :token"),
        unlock: sql("UPDATE {locks}
SET token = NULL, held_until = now() + :period::bigint * interval '1 microsecond'
WHERE name = :name AND token = :token"),
        owner: sql("SELECT COALESCE(token <> :token, false)::int::bigint
FROM {locks} WHERE name = :name"),
    }
}
