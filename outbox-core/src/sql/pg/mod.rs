//! PostgreSQL 13 or newer.

mod claim;
mod dead_letters;
mod destinations;
mod enqueue;
mod error;
mod functions;
mod idempotency;
mod keyed;
mod locks;
mod maintenance;
mod notify;
mod schema;
mod settle;
mod unblock;

pub use claim::ClaimSql;
pub use dead_letters::{discard, list_dead, replay};
pub use enqueue::EnqueueSql;
pub use error::{code_kind, is_id_taken, session_problem};
pub use maintenance::{prune, stats};
pub use notify::NotifySql;
pub use schema::{SCHEMA_VERSION, SchemaSql, migrations};
pub use settle::SettleSql;

use super::named::{Marks, Named};
use super::session::only;
use super::{Cell, DestinationSql, IdempotencySql, LockSql, Session, Sql, TableNames, Value};
use crate::{Error, Retention};

/// Every statement for one set of tables.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "named by what they do")]
pub struct Statements {
    pub claim: ClaimSql,
    pub settle: SettleSql,
    pub enqueue: EnqueueSql,
    dead_letters: dead_letters::DeadLetterSql,
    pub destinations: DestinationSql,
    maintenance: maintenance::MaintenanceSql,
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
            dead_letters: dead_letters::DeadLetterSql::new(names),
            destinations: destinations::destinations(names),
            maintenance: maintenance::MaintenanceSql::new(names),
            notify: NotifySql::new(names),
            idempotency: idempotency::idempotency(names),
            locks: locks::locks(names),
            schema: SchemaSql::new(names),
        }
    }
}

/// The one number that a statement returns.
async fn count<S: Session>(session: &mut S, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error> {
    let row = session
        .fetch(sql, values, &[Cell::Int])
        .await
        .and_then(only)?;
    Ok(u64::try_from(row.int(0)).unwrap_or(0))
}

fn sql(names: &TableNames, template: &str) -> Sql {
    names.fill(template, '"').into()
}

/// A template that names its values.
fn named(names: &TableNames, template: &str) -> Named {
    Named::new(template, Marks::Numbered('$'), |text| names.fill(text, '"'))
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
