//! Tables and migrations.

use super::sql;
use crate::sql::{Migration, Sql, TableNames};

/// The schema that this version of the library works on. It also works on the next one.
pub const SCHEMA_VERSION: i32 = 2;

/// Statements about the schema itself. Those of a migration commit one by one, so each can be made
/// again.
#[derive(Debug)]
#[non_exhaustive]
pub struct SchemaSql {
    /// Waits until no other connection migrates; one row: 1, or 0 where that took a minute.
    pub lock: Sql,
    /// Ends that.
    pub unlock: Sql,
    /// Creates the database, where one was named, and the table of migrations.
    pub prepare: Vec<Sql>,
    /// One row: the version of the schema.
    pub version: Sql,
    /// The steps, each by the simple protocol.
    pub migrations: Vec<Migration>,
}

impl SchemaSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let database = match names.schema_name() {
            Some(_) => "''", // It stands in the table's name.
            None => "COALESCE(DATABASE(), '')",
        };
        let lock = format!("LEFT(SHA2(CONCAT({database}, '{{migrations}}'), 256), 60)");
        let mut prepare = Vec::new();
        if let Some(schema) = names.schema_name() {
            prepare.push(format!("CREATE DATABASE IF NOT EXISTS `{schema}`").into());
        }
        prepare.push(sql(names, MIGRATIONS_TABLE));
        Self {
            lock: sql(names, &format!("SELECT GET_LOCK({lock}, 60)")),
            unlock: sql(names, &format!("SELECT RELEASE_LOCK({lock})")),
            prepare,
            version: sql(names, "SELECT COALESCE(MAX(version), 0) FROM {migrations}"),
            migrations: migrations(names),
        }
    }
}

/// Every migration, oldest first.
#[must_use]
pub fn migrations(names: &TableNames) -> Vec<Migration> {
    let steps = [
        (1, "outbox", include_str!("0001_outbox.sql")),
        (2, "receiving", include_str!("0002_receiving.sql")),
    ];
    steps
        .into_iter()
        .map(|(version, name, statements)| {
            let text = format!(
                "{MIGRATIONS_TABLE};\n\n{statements}\n\
                 INSERT IGNORE INTO {{migrations}} (version, name) VALUES ({version}, '{name}');\n"
            );
            Migration::new(version, name, names.fill(&text, '`'))
        })
        .collect()
}

const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS {migrations} (
    version    INT NOT NULL,
    name       VARCHAR(64) NOT NULL,
    applied_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (version)
) ENGINE = InnoDB";
