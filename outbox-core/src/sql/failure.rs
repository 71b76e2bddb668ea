//! How adapters report what a database refused.

use crate::{Error, ErrorKind};

/// The error of a failed `operation`, to which the adapter adds the cause. `migrate` names the call
/// that makes the tables.
#[must_use]
pub fn failure(kind: ErrorKind, operation: &str, migrate: &str) -> Error {
    let message = match kind {
        ErrorKind::Schema => format!(
            "{operation}: the outbox tables are missing or of another version; \
             `{migrate}` brings them up to date"
        ),
        ErrorKind::Unavailable => format!("{operation}: the database can't be reached or answer"),
        ErrorKind::Conflict => format!("{operation}: another transaction was in the way"),
        _ => format!("{operation} failed"),
    };
    Error::new(kind, message)
}

/// The error of an enqueue whose id belongs to an event that is still open.
#[must_use]
pub fn id_taken() -> Error {
    Error::invalid_event("id", "belongs to an event that is still open")
}
