//! What MySQL's and MariaDB's errors mean.

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
                return Error::invalid_event("id", "belongs to an event that is still open")
                    .with_source(error);
            }
            number_kind(number)
        }
        _ => ErrorKind::Other,
    };
    let message = match kind {
        ErrorKind::Schema => format!(
            "{operation}: the outbox tables are missing or of another version; \
             `MySqlStore::migrate` brings them up to date"
        ),
        ErrorKind::Unavailable => format!("{operation}: the database can't be reached or answer"),
        ErrorKind::Conflict => format!("{operation}: another transaction was in the way"),
        _ => format!("{operation} failed"),
    };
    Error::new(kind, message).with_source(error)
}

/// By error number (MySQL server error reference; MariaDB's are the same up to 1900).
const fn number_kind(number: u16) -> ErrorKind {
    match number {
        // deadlock, lock wait timeout, lock not available, record has changed since last read
        1213 | 1205 | 3572 | 1020 => ErrorKind::Conflict,
        // no such table, unknown column, unknown database
        1146 | 1054 | 1049 => ErrorKind::Schema,
        // too many connections (of the server, of the user); shutdown; aborted; connection killed;
        // query interrupted, execution time exceeded; server gone, connection lost; disk full
        1040 | 1203 | 1226 | 1053 | 1077 | 1079 | 1152 | 1184 | 1927 | 1317 | 1969 | 3024
        | 2006 | 2013 | 1021 | 1114 => ErrorKind::Unavailable,
        // read-only server or transaction: a replica, until the failover is complete
        1290 | 1792 | 1836 => ErrorKind::Unavailable,
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_kinds() {
        assert_eq!(number_kind(1213), ErrorKind::Conflict);
        assert_eq!(number_kind(1205), ErrorKind::Conflict);
        assert_eq!(number_kind(1146), ErrorKind::Schema);
        assert_eq!(number_kind(1040), ErrorKind::Unavailable);
        assert_eq!(number_kind(1064), ErrorKind::Other);
    }

    #[test]
    fn a_pool_without_connections_is_unavailable() {
        let error = classify("claim", SqlxError::PoolTimedOut);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
