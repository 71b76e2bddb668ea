//! What PostgreSQL's errors mean.

use outbox_core::Error;
use outbox_core::sql::pg::{code_kind, is_id_taken, session_problem};
use outbox_core::sql::{failure, id_taken};
use sqlx::Error as SqlxError;

use crate::error::kind;

/// The call that makes the tables, as errors name it.
pub(super) const MIGRATE: &str = "PgStore::migrate";

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: SqlxError) -> Error {
    let kind = match &error {
        SqlxError::Database(database) => {
            if is_id_taken(database.constraint()) {
                return id_taken().with_source(error);
            }
            let code = database.code();
            if let Some(problem) = session_problem(operation, code.as_deref(), database.message()) {
                return problem.with_source(error);
            }
            code_kind(code.as_deref().unwrap_or_default())
        }
        _ => kind(&error),
    };
    failure(kind, operation, MIGRATE).with_source(error)
}
