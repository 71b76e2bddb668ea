//! MySQL 8 and MariaDB 10.6, and newer.
//!
//! Calls that change several rows are a short transaction at READ COMMITTED (binary logs must be
//! `ROW` or `MIXED`), since neither database has `UPDATE … RETURNING`. What they do is written here,
//! over a [`Session`], so that adapters only run statements. Instants are whole microseconds of the
//! server's clock. Lists are bound as text: numbers as JSON, names as hex (see [`names_text`]).

mod claim;
mod claiming;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod idempotency;
mod locks;
mod maintenance;
mod names;
mod runs;
mod schema;
mod settle;

pub use claiming::{ClaimState, claim};
pub use dead_letters::{discard, list_dead, replay};
pub use enqueue::enqueue;
pub use error::number_kind;
pub use maintenance::{prune, stats};
pub use names::names_text;
pub use schema::{SCHEMA_VERSION, check_schema, migrate, migrations};
pub use settle::{extend, release_claim, settle};

use super::named::{Marks, Named};
use super::{Cell, DestinationSql, IdempotencySql, LockSql, Row, Session, TableNames, Value};

/// Every statement for one set of tables.
#[derive(Debug)]
pub struct Statements {
    schema: schema::SchemaSql,
    claim: claim::ClaimSql,
    settle: settle::SettleSql,
    enqueue: enqueue::EnqueueSql,
    dead_letters: dead_letters::DeadLetterSql,
    /// On destinations.
    pub destinations: DestinationSql,
    maintenance: maintenance::MaintenanceSql,
    /// On idempotency keys and inbox ids.
    pub idempotency: IdempotencySql,
    /// On leased locks.
    pub locks: LockSql,
}

impl Statements {
    /// The statements for these tables.
    #[must_use]
    pub fn new(names: &TableNames) -> Self {
        Self {
            schema: schema::SchemaSql::new(names),
            claim: claim::ClaimSql::new(names),
            settle: settle::SettleSql::new(names),
            enqueue: enqueue::EnqueueSql::new(names),
            dead_letters: dead_letters::DeadLetterSql::new(names),
            destinations: destinations::destinations(names),
            maintenance: maintenance::MaintenanceSql::new(names),
            idempotency: idempotency::idempotency(names),
            locks: locks::locks(names),
        }
    }
}

/// Begins a transaction: several statements, made by the simple protocol. The isolation level is
/// that of this transaction alone.
pub const BEGIN: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";

/// A template as a statement for these tables. `:now` is the server's clock, `:columns` those of
/// [`EventRow`](super::EventRow), and `:seqs` a list of numbers bound as a JSON array. `:events` and
/// `:dead` join a row for each number of a list by the primary key: left to itself, the server may
/// read a small table as a whole, which locks all of it. `:lock(e)` locks the rows of `e` alone: MySQL
/// refuses to lock those of a list, and MariaDB, which has no `OF`, takes that for a comment.
fn sql(names: &TableNames, template: &str) -> super::Sql {
    let mut text = template
        .replace(":now", NOW)
        .replace(":columns", COLUMNS)
        .replace(":seqs", SEQS)
        .replace(":events", "STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY)")
        .replace(":dead", "STRAIGHT_JOIN {dead} e FORCE INDEX (PRIMARY)");
    for table in ["b", "d", "e", "g", "k"] {
        let lock = format!("FOR UPDATE /*!80001 OF {table} */");
        text = text.replace(&format!(":lock({table})"), &lock);
    }
    names.fill(&text, '`').into()
}

/// A template that names its values; `:now` is the server's clock here too.
fn named(names: &TableNames, template: &str) -> Named {
    let template = template.replace(":now", NOW);
    Named::new(&template, Marks::Each, |text| names.fill(text, '`'))
}

const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))";

const SEQS: &str = "JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) j";

/// In the order of [`EventRow`](super::EventRow).
const COLUMNS: &str = "e.seq, e.id, e.event_type, e.destination, e.`key`, e.payload, \
    e.content_type, e.aggregate_type, e.aggregate_id, e.headers, e.dedup_key, e.created_at, \
    e.expires_at, e.max_attempts, e.attempts, e.replays, e.last_error";

/// The place of parked rows, and that of keyed ones: 60 bits of a hash.
const DESTINATION_HASH: &str = "CAST(CONV(LEFT(SHA2(destination, 256), 15), 16, 10) AS SIGNED)";
const LANE: &str =
    "CAST(CONV(LEFT(SHA2(CONCAT(destination, CHAR(0), `key`), 256), 15), 16, 10) AS SIGNED)";
