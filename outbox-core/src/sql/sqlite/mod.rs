//! SQLite 3.38 and newer: statements and migrations.
//!
//! Every statement is one autocommit write (triggers do the rest), so that a dropped call leaves no
//! transaction open. Instants are whole microseconds of the store's clock and are bound, never read
//! from the database. What the calls do is written here too, over a [`Session`](super::Session), so
//! that adapters only run statements. Lists are bound as JSON arrays, tokens and ids in them in upper-case hex.

mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod idempotency;
mod locks;
mod maintenance;
mod schema;
mod settle;

use std::sync::Arc;
use std::time::Duration;

pub use claim::{Turn, claim};
pub use dead_letters::{discard, get_dead, list_dead, replay};
pub use enqueue::enqueue;
pub use error::{error_kind, failure, is_id_taken};
pub use maintenance::{prune, stats};
pub use schema::{
    AWAIT_WRITER, SCHEMA_VERSION, WRITE_AHEAD, WRITE_AHEAD_TRIES, check_schema, migrate, migrations,
};
pub use settle::{extend, release_claim, settle};

use super::named::{Marks, Named};
use super::{DestinationSql, IdempotencySql, LockSql, Sql, TableNames};
use crate::Error;
use crate::clock::{Clock, duration_micros, to_micros};

/// Every statement, for one set of tables.
#[derive(Debug)]
pub struct Statements {
    enqueue: enqueue::EnqueueStatements,
    claim: claim::Claims,
    settle: settle::SettleStatements,
    dead: dead_letters::DeadLetterStatements,
    /// On destinations.
    pub destinations: DestinationSql,
    maintenance: maintenance::MaintenanceStatements,
    /// On idempotency keys and inbox ids.
    pub idempotency: IdempotencySql,
    /// On leased locks.
    pub locks: LockSql,
    schema: schema::SchemaStatements,
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
            enqueue: enqueue::EnqueueStatements::new(names),
            claim: claim::Claims::new(names),
            settle: settle::SettleStatements::new(names),
            dead: dead_letters::DeadLetterStatements::new(names),
            destinations: destinations::destinations(names),
            maintenance: maintenance::MaintenanceStatements::new(names),
            idempotency: idempotency::idempotency(names),
            locks: locks::locks(names),
            schema: schema::SchemaStatements::new(names),
        }))
    }
}

/// Now, in microseconds since the epoch.
fn now(clock: &dyn Clock) -> i64 {
    to_micros(clock.now())
}

/// That long from now.
fn after(clock: &dyn Clock, period: Duration) -> i64 {
    now(clock).saturating_add(duration_micros(period))
}

/// That long ago.
fn before(clock: &dyn Clock, period: Duration) -> i64 {
    now(clock).saturating_sub(duration_micros(period))
}

/// A template as a statement for these tables.
fn sql(names: &TableNames, template: &str) -> Sql {
    names.fill(template, '"').into()
}

/// A template that names its values; `:now` is the store's clock.
fn named(names: &TableNames, template: &str) -> Named {
    Named::new(template, Marks::Numbered('?'), |text| names.fill(text, '"'))
}

/// The columns of a row, in the order in which [`EventRow`](super::EventRow) names them; a prefix
/// of every statement's result that holds events.
const COLUMNS: &str = "seq, id, event_type, destination, \"key\", payload, content_type, \
    aggregate_type, aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, \
    attempts, replays, last_error";

/// The destinations that are held or disabled at `?1`.
const HELD: &str = "SELECT destination FROM {~destinations} WHERE disabled <> 0 OR held_until > ?1";
