//! PostgreSQL 13 or newer.

mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod idempotency;
mod locks;
mod maintenance;
mod notify;
mod schema;
mod settle;

pub use claim::ClaimSql;
pub use dead_letters::DeadLetterSql;
pub use destinations::DestinationSql;
pub use enqueue::EnqueueSql;
pub use error::{code_kind, is_id_taken};
pub use idempotency::IdempotencySql;
pub use locks::LockSql;
pub use maintenance::MaintenanceSql;
pub use notify::NotifySql;
pub use schema::{SCHEMA_VERSION, SchemaSql, migrations};
pub use settle::SettleSql;

use super::TableNames;
use crate::Retention;

/// Every statement for one set of tables.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "named by what they do")]
pub struct Statements {
    pub claim: ClaimSql,
    pub settle: SettleSql,
    pub enqueue: EnqueueSql,
    pub dead_letters: DeadLetterSql,
    pub destinations: DestinationSql,
    pub maintenance: MaintenanceSql,
    pub notify: NotifySql,
    pub idempotency: IdempotencySql,
    pub locks: LockSql,
    pub schema: SchemaSql,
}

impl Statements {
    /// The statements for these tables.
    #[must_use]
    pub fn new(names: &TableNames, retention: Retention) -> Self {
        Self {
            claim: ClaimSql::new(names),
            settle: SettleSql::new(names, retention),
            enqueue: EnqueueSql::new(names),
            dead_letters: DeadLetterSql::new(names),
            destinations: DestinationSql::new(names),
            maintenance: MaintenanceSql::new(names),
            notify: NotifySql::new(names),
            idempotency: IdempotencySql::new(names),
            locks: LockSql::new(names),
            schema: SchemaSql::new(names),
        }
    }
}

fn sql(names: &TableNames, template: &str) -> super::Sql {
    names.fill(template, '"').into()
}

/// The columns of [`EventRow`](super::EventRow), in its order.
macro_rules! event_columns {
    () => {
        "seq, id, event_type, destination, key, payload, content_type, aggregate_type, \
         aggregate_id, headers, dedup_key, created_at, expires_at, max_attempts, attempts, replays, \
         last_error"
    };
}
use event_columns;
