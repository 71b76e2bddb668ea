//! Tables and migrations.

use super::{functions, keyed, sql};
use crate::sql::{Migration, Sql, TableNames};

/// The schema that this version of the library works on. It also works on the next one.
pub const SCHEMA_VERSION: i32 = 2;

/// Statements about the schema itself.
#[derive(Debug)]
#[non_exhaustive]
pub struct SchemaSql {
    /// Brings the schema up to date, in one transaction of its own. Several statements: it goes by
    /// the simple query protocol, outside any transaction. Safe by many processes at once.
    pub migrate: Sql,
    /// One row: the version of the schema.
    pub version: Sql,
}

impl SchemaSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            migrate: migrate(names).into(),
            version: sql(names, "SELECT COALESCE(max(version), 0) FROM {migrations}"),
        }
    }
}

/// Every migration, oldest first.
#[must_use]
pub fn migrations(names: &TableNames) -> Vec<Migration> {
    steps()
        .into_iter()
        .map(|(version, name, statements)| {
            let mut text = MIGRATIONS_TABLE.to_owned();
            text.push_str(&statements);
            text.push_str(&record(version, name));
            let mut text = names.fill(&text, '"');
            if let Some(schema) = names.schema_name() {
                text.insert_str(0, &format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\";\n\n"));
            }
            Migration::new(version, name, text)
        })
        .collect()
}

fn steps() -> [(i32, &'static str, String); 2] {
    let outbox = [
        include_str!("0001_outbox.sql"),
        &keyed::walk(),
        &keyed::front(),
        &functions::create(),
    ];
    let receiving = [
        include_str!("0002_receiving.sql"),
        &functions::create_receiving(),
    ];
    [
        (1, "outbox", outbox.join("\n")),
        (2, "receiving", receiving.join("\n")),
    ]
}

const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS {migrations} (
    version integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

";

fn record(version: i32, name: &str) -> String {
    format!("\nINSERT INTO {{migrations}} (version, name) VALUES ({version}, '{name}');\n")
}

/// What a change of the schema begins with: nobody else changes it until it ends. `IF NOT EXISTS` alone is no
/// protection against a second process. All statements of one simple query are one transaction; at another
/// isolation level, it would not see what was done while it waited.
pub(super) const ALONE: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT pg_advisory_xact_lock(hashtextextended('{migrations}', 20260101));
";

fn migrate(names: &TableNames) -> String {
    let mut text = ALONE.to_owned();
    if let Some(schema) = names.schema_name() {
        // Others, with another prefix and so another lock, may make the same schema.
        text.push_str(&format!(
            "DO $outbox$ BEGIN
    IF to_regnamespace('\"{schema}\"') IS NULL THEN CREATE SCHEMA \"{schema}\"; END IF;
EXCEPTION WHEN duplicate_schema OR unique_violation THEN NULL;
END $outbox$;\n"
        ));
    }
    text.push_str("SET LOCAL client_min_messages = warning;\n");
    text.push_str(MIGRATIONS_TABLE);
    for (version, name, statements) in steps() {
        text.push_str(&format!(
            "DO $outbox$ BEGIN
IF NOT EXISTS (SELECT FROM {{migrations}} WHERE version = {version}) THEN
{statements}
{record}
END IF;
END $outbox$;\n",
            record = record(version, name),
        ));
    }
    names.fill(&text, '"')
}
