//! What SQLite's errors mean.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use diesel::sqlite::Sqlite;
use outbox_core::sql::id_taken;
use outbox_core::sql::sqlite::{error_kind, failure, is_id_taken};
use outbox_core::{Error, ErrorKind};

use super::MIGRATE;
use crate::run::Runs;
use crate::session::Dialect;

impl Dialect for Sqlite {
    type Bound<'q> = outbox_core::sql::Value<'q>;

    async fn classify<C: Runs<Backend = Self>>(
        _: &mut C,
        operation: &'static str,
        error: DieselError,
    ) -> Error {
        classify(operation, error)
    }
}

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: DieselError) -> Error {
    if let DieselError::DatabaseError(_, information) = &error
        && is_id_taken(information.message())
    {
        return id_taken().with_source(error);
    }
    failure(kind(&error), operation, MIGRATE).with_source(error)
}

/// Whether another connection was in the way.
pub(super) fn is_busy(error: &DieselError) -> bool {
    kind(error) == ErrorKind::Conflict
}

/// diesel hands on no result code.
fn kind(error: &DieselError) -> ErrorKind {
    match error {
        DieselError::DatabaseError(DatabaseErrorKind::UnableToSendCommand, _)
        | DieselError::BrokenTransactionManager => ErrorKind::Unavailable,
        DieselError::DatabaseError(_, information) => error_kind(None, information.message()),
        DieselError::RollbackErrorOnCommit { commit_error, .. } => kind(commit_error),
        _ => ErrorKind::Other,
    }
}
