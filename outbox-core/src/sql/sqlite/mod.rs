//! SQLite 3.38 and newer: statements and migrations.
//!
//! Every statement is one autocommit write (triggers do the rest), so that a dropped call leaves no
//! transaction open. Instants are whole microseconds of the store's clock and are bound, never read
//! from the database. Lists are bound as JSON arrays, tokens and ids in them in upper-case hex.

mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod idempotency;
mod locks;
mod maintenance;
mod settle;

use std::sync::Arc;

pub use claim::Claims;
pub use dead_letters::DeadLetterStatements;
pub use destinations::DestinationStatements;
pub use enqueue::{CHUNKS, EnqueueStatements};
pub use idempotency::IdempotencyStatements;
pub use locks::LockStatements;
pub use maintenance::MaintenanceStatements;
pub use settle::SettleStatements;

use super::{Migration, Sql, TableNames};
use crate::Error;

/// The version of the schema that this library needs.
pub const SCHEMA_VERSION: i32 = 2;

/// Every statement, for one set of tables.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Statements {
    /// Producers.
    pub enqueue: EnqueueStatements,
    /// Claims.
    pub claim: Claims,
    /// Settles, extensions and releases.
    pub settle: SettleStatements,
    /// Dead letters.
    pub dead: DeadLetterStatements,
    /// Destinations.
    pub destinations: DestinationStatements,
    /// Stats and prunes.
    pub maintenance: MaintenanceStatements,
    /// Idempotency keys and inbox ids.
    pub idempotency: IdempotencyStatements,
    /// Leased locks.
    pub locks: LockStatements,
    /// The version of the schema; none where the table is empty.
    pub version: Sql,
    /// Creates the table of migrations where there is none.
    pub create_migrations: Sql,
    /// The steps.
    pub migrations: Vec<Migration>,
}

impl Statements {
    /// The statements for these tables.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where a schema is set: SQLite has none.
    pub fn new(names: &TableNames) -> Result<Arc<Self>, Error> {
        if let Some(schema) = names.schema_name() {
            let problem = format!("is {schema:?}; SQLite has no schemas, use a prefix");
            return Err(Error::invalid_config("schema", problem));
        }
        Ok(Arc::new(Self {
            enqueue: EnqueueStatements::new(names),
            claim: Claims::new(names),
            settle: SettleStatements::new(names),
            dead: DeadLetterStatements::new(names),
            destinations: DestinationStatements::new(names),
            maintenance: MaintenanceStatements::new(names),
            idempotency: IdempotencyStatements::new(names),
            locks: LockStatements::new(names),
            version: sql(names, "SELECT max(version) FROM {~migrations}"),
            create_migrations: sql(names, CREATE_MIGRATIONS),
            migrations: migrations(names),
        }))
    }
}

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

/// A template as a statement for these tables.
fn sql(names: &TableNames, template: &str) -> Sql {
    names.fill(template, '"').into()
}

/// The columns of a row, in the order in which [`EventRow`](super::EventRow) names them; a prefix
/// of every statement's result that holds events.
const COLUMNS: &str = "seq, id, event_type, destination, \"key\", payload, content_type, \
    aggregate_type, aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, \
    attempts, replays, last_error";

/// The destinations that are held or disabled at `?1`.
const HELD: &str = "SELECT destination FROM {~destinations} WHERE disabled <> 0 OR held_until > ?1";
