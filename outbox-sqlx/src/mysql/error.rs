//! What MySQL's and MariaDB's errors mean.

use outbox_core::sql::mysql::number_kind;
use outbox_core::sql::{failure, id_taken};
use outbox_core::{Error, ErrorKind};
use sqlx::Error as SqlxError;
use sqlx::mysql::MySqlDatabaseError;

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
            let number = database
                .try_downcast_ref::<MySqlDatabaseError>()
                .map_or(0, MySqlDatabaseError::number);
            // MySQL writes the table before the index, MariaDB does not.
            if number == 1062 && database.message().contains("open_event_id'") {
                return id_taken().with_source(error);
            }
            number_kind(number)
        }
        _ => ErrorKind::Other,
    };
    failure(kind, operation, "MySqlStore::migrate").with_source(error)
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
