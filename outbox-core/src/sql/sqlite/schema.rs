//! Tables and migrations.

use super::{Statements, sql};
use crate::Error;
use crate::sql::migration::make_missing;
use crate::sql::session::number;
use crate::sql::{Migration, Session, Sql, TableNames, check_version};

/// The version of the schema that this library needs.
pub const SCHEMA_VERSION: i32 = 2;

#[derive(Debug)]
pub(super) struct SchemaStatements {
    /// One row: the version of the schema, null where the table is empty.
    version: Sql,
    /// Creates the table of migrations where there is none.
    create_migrations: Sql,
    /// The steps.
    migrations: Vec<Migration>,
}

impl SchemaStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            version: sql(names, "SELECT max(version) FROM {~migrations}"),
            create_migrations: sql(names, CREATE_MIGRATIONS),
            migrations: migrations(names),
        }
    }
}

/// Makes or updates the tables, in a transaction that was begun as a writer's.
///
/// # Errors
///
/// Those of the session; nothing is changed where the transaction is not committed.
pub async fn migrate<S: Session>(session: &mut S, sql: &Statements) -> Result<(), Error> {
    let sql = &sql.schema;
    session.batch(&sql.create_migrations).await?;
    make_missing(session, &sql.version, &sql.migrations).await
}

/// Checks that the tables are there and of a version that this library works on. `migrate` names the
/// call that updates them.
///
/// # Errors
///
/// Those of the session; [`Schema`](crate::ErrorKind::Schema) where they are not.
pub async fn check_schema<S: Session>(
    session: &mut S,
    sql: &Statements,
    migrate: &str,
) -> Result<(), Error> {
    let found = number(session, &sql.schema.version).await?;
    check_version(found, SCHEMA_VERSION, migrate)
}

/// Gives the database a write-ahead log. Where several processes open a new file at the same moment, this
/// fails at once, whatever the busy time-out: make [`AWAIT_WRITER`], and this again, up to
/// [`WRITE_AHEAD_TRIES`] times.
pub const WRITE_AHEAD: &str = "PRAGMA journal_mode = WAL";
/// Waits for whoever writes, as long as the busy time-out; where that was too short, it fails.
pub const AWAIT_WRITER: &str = "BEGIN IMMEDIATE; COMMIT";
/// See [`WRITE_AHEAD`].
pub const WRITE_AHEAD_TRIES: u32 = 100;

const CREATE_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS {~migrations} (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
)";

/// The steps of the schema, for people who migrate with other tools. Each creates the table of
/// migrations where it is missing and records itself; run each in a transaction.
#[must_use]
pub fn migrations(names: &TableNames) -> Vec<Migration> {
    let steps = [
        (1, "outbox", include_str!("0001_outbox.sql")),
        (2, "receiving", include_str!("0002_receiving.sql")),
    ];
    steps
        .into_iter()
        .map(|(version, name, text)| {
            let text = format!(
                "{CREATE_MIGRATIONS};\n{text}\nINSERT INTO {{~migrations}} (version, name, applied_at)\n\
                 VALUES ({version}, '{name}', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));\n"
            );
            Migration::new(version, name, names.fill(&text, '"'))
        })
        .collect()
}
