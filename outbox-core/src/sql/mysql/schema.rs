//! Tables and migrations.

use super::{Session, Statements, sql};
use crate::sql::migration::make_missing;
use crate::sql::session::number;
use crate::sql::{Migration, Sql, TableNames, check_version};
use crate::{Error, ErrorKind};

/// The schema that this version of the library works on. It also works on the next one.
pub const SCHEMA_VERSION: i32 = 2;

/// Statements about the schema itself. Those of a migration commit one by one, so each can be made
/// again.
#[derive(Debug)]
pub(super) struct SchemaSql {
    /// Waits until no other connection migrates; one row: 1, or 0 where that took a minute.
    lock: Sql,
    /// Ends that.
    unlock: Sql,
    /// Creates the database, where one was named, and the table of migrations.
    prepare: Vec<Sql>,
    /// One row: the version of the schema.
    version: Sql,
    /// The steps.
    migrations: Vec<Migration>,
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

/// Makes or updates the tables, on a connection in autocommit mode. Where its future is dropped, the
/// connection may keep the lock on migrations and must be closed.
///
/// # Errors
///
/// Those of the session; [`Conflict`](ErrorKind::Conflict) where another connection has migrated for
/// a minute.
pub async fn migrate<S: Session>(session: &mut S, sql: &Statements) -> Result<(), Error> {
    let sql = &sql.schema;
    if number(session, &sql.lock).await? != 1 {
        let problem = "migrate: another process has been migrating for a minute";
        return Err(Error::new(ErrorKind::Conflict, problem));
    }
    let made = make(session, sql).await;
    // A connection that goes back to its pool must not keep the lock. (A lost one does not.)
    let unlocked = number(session, &sql.unlock).await;
    made.and(unlocked.map(drop))
}

async fn make<S: Session>(session: &mut S, sql: &SchemaSql) -> Result<(), Error> {
    for statement in &sql.prepare {
        session.batch(statement).await?;
    }
    make_missing(session, &sql.version, &sql.migrations).await
}

/// Checks that the tables are there and of a version that this library works on. `migrate` names the
/// call that updates them.
///
/// # Errors
///
/// Those of the session; [`Schema`](ErrorKind::Schema) where they are not.
pub async fn check_schema<S: Session>(
    session: &mut S,
    sql: &Statements,
    migrate: &str,
) -> Result<(), Error> {
    let found = number(session, &sql.schema.version).await?;
    check_version(found, SCHEMA_VERSION, migrate)
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
