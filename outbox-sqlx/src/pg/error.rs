//! What PostgreSQL's errors mean.

use outbox_core::sql::pg::{code_kind, is_id_taken};
use outbox_core::sql::{failure, id_taken};
use outbox_core::{Error, ErrorKind};
use sqlx::Error as SqlxError;

/// The call that makes the tables, as errors name it.
pub(super) const MIGRATE: &str = "PgStore::migrate";

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: SqlxError) -> Error {
    let kind = match &error {
        SqlxError::Io(_)
        | SqlxError::Tls(_)
        | SqlxError::PoolTimedOut
        | SqlxError::PoolClosed
        | SqlxError::WorkerCrashed
        | SqlxError::Protocol(_) => ErrorKind::Unavailable,
        SqlxError::Database(database) => {
            if is_id_taken(database.constraint()) {
                return id_taken().with_source(error);
            }
            code_kind(database.code().as_deref().unwrap_or_default())
        }
        _ => ErrorKind::Other,
    };
    failure(kind, operation, MIGRATE).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_without_connections_is_unavailable() {
        let error = classify("claim", SqlxError::PoolTimedOut);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
