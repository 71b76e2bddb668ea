//! What PostgreSQL's errors mean.

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use outbox_core::{Error, ErrorKind};

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: DieselError) -> Error {
    if let DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, information) = &error
        && information
            .constraint_name()
            .is_some_and(|name| name.ends_with("_events_id"))
    {
        return Error::invalid_event("id", "belongs to an event that is still open")
            .with_source(error);
    }
    let kind = kind(&error);
    let message = match kind {
        ErrorKind::Schema => format!(
            "{operation}: the outbox tables are missing or of another version; \
             `PgStore::migrate` brings them up to date"
        ),
        ErrorKind::Unavailable => format!("{operation}: the database can't be reached or answer"),
        ErrorKind::Conflict => format!("{operation}: another transaction was in the way"),
        _ => format!("{operation} failed"),
    };
    Error::new(kind, message).with_source(error)
}

/// The kind of an error.
///
/// diesel hands on neither the SQLSTATE nor the error that has it, so a few of them are known by
/// their English text. A server that translates its messages (`lc_messages`) makes those
/// [`ErrorKind::Other`].
fn kind(error: &DieselError) -> ErrorKind {
    match error {
        DieselError::DatabaseError(kind, information) => match kind {
            DatabaseErrorKind::SerializationFailure => ErrorKind::Conflict,
            DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::ClosedConnection
            | DatabaseErrorKind::ReadOnlyTransaction => ErrorKind::Unavailable,
            DatabaseErrorKind::Unknown => unknown(information.as_ref()),
            _ => ErrorKind::Other,
        },
        DieselError::BrokenTransactionManager => ErrorKind::Unavailable,
        DieselError::RollbackErrorOnCommit { commit_error, .. } => kind(commit_error),
        _ => ErrorKind::Other,
    }
}

fn unknown(information: &dyn DatabaseErrorInformation) -> ErrorKind {
    let message = information.message();
    let any = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if any(&[
        "deadlock detected",
        "could not obtain lock",
        "due to lock timeout",
    ]) {
        return ErrorKind::Conflict;
    }
    if any(&[
        "terminating connection",
        "the database system is",
        "due to statement timeout",
        "due to user request",
        "due to conflict with recovery",
        "too many clients",
        "connection slots are reserved",
        "No space left on device",
    ]) {
        return ErrorKind::Unavailable;
    }
    // Our statements are right for our tables: one that can't be analysed met other tables.
    // (The position comes with such errors in every language.)
    if information.statement_position().is_some() || message.ends_with("does not exist") {
        return ErrorKind::Schema;
    }
    ErrorKind::Other
}
