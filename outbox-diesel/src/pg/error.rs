//! What PostgreSQL's errors mean.

use diesel::pg::Pg;
use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use outbox_core::sql::pg::{is_id_taken, session_problem};
use outbox_core::sql::{failure, id_taken};
use outbox_core::{Error, ErrorKind};

use super::value::Value;
use crate::run::Runs;
use crate::session::Dialect;

/// The call that makes the tables, as errors name it.
pub(super) const MIGRATE: &str = "PgStore::migrate";

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: DieselError) -> Error {
    if let DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, information) = &error
        && is_id_taken(information.constraint_name())
    {
        return id_taken().with_source(error);
    }
    if let DieselError::DatabaseError(_, information) = &error
        && let Some(problem) = session_problem(operation, None, information.message())
    {
        return problem.with_source(error);
    }
    failure(kind(&error), operation, MIGRATE).with_source(error)
}

impl Dialect for Pg {
    type Bound<'q> = Value<'q>;

    async fn classify<C: Runs<Backend = Self>>(
        _: &mut C,
        operation: &'static str,
        error: DieselError,
    ) -> Error {
        classify(operation, error)
    }
}

/// The kind of an error.
///
/// A few are known by their English text, since the SQLSTATE can't be had: diesel-async 0.9 keeps
/// the driver's error in a private type behind `dyn DatabaseErrorInformation`, which has no method
/// for the code and no way back to the type; diesel's error names no source; and PostgreSQL, unlike
/// MySQL, can't be asked for its last error. A server that translates its messages (`lc_messages`)
/// makes those [`ErrorKind::Other`].
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
