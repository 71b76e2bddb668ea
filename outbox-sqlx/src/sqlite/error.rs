//! What SQLite's errors mean.

use outbox_core::sql::id_taken;
use outbox_core::sql::sqlite::{error_kind, failure, is_id_taken};
use outbox_core::{Error, ErrorKind};
use sqlx::Error as SqlxError;

use super::MIGRATE;
use crate::error::kind;

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: SqlxError) -> Error {
    let kind = match &error {
        SqlxError::Database(database) => {
            if is_id_taken(database.message()) {
                return id_taken().with_source(error);
            }
            let code = database.code().and_then(|code| code.parse().ok());
            error_kind(Some(code.unwrap_or_default()), database.message())
        }
        // There is no wire: a statement that can't be made.
        SqlxError::Protocol(_) => ErrorKind::Other,
        _ => kind(&error),
    };
    failure(kind, operation, MIGRATE).with_source(error)
}
