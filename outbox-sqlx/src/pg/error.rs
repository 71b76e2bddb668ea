//! What PostgreSQL's errors mean.

use outbox_core::{Error, ErrorKind};
use sqlx::Error as SqlxError;

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
            if database
                .constraint()
                .is_some_and(|name| name.ends_with("_events_id"))
            {
                return Error::invalid_event("id", "belongs to an event that is still open")
                    .with_source(error);
            }
            code_kind(database.code().as_deref().unwrap_or_default())
        }
        _ => ErrorKind::Other,
    };
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

/// By SQLSTATE (PostgreSQL documentation, appendix A).
fn code_kind(code: &str) -> ErrorKind {
    match code {
        // serialization_failure, deadlock_detected, lock_not_available
        "40001" | "40P01" | "55P03" => ErrorKind::Conflict,
        // undefined table, column, function; invalid_schema_name
        "42P01" | "42703" | "42883" | "3F000" => ErrorKind::Schema,
        // admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout; query_canceled
        "57P01" | "57P02" | "57P03" | "57P05" | "57014" => ErrorKind::Unavailable,
        // read_only_sql_transaction: a standby, until the failover is complete
        "25006" => ErrorKind::Unavailable,
        // connection exceptions; insufficient resources (too_many_connections, disk_full)
        _ if code.starts_with("08") || code.starts_with("53") => ErrorKind::Unavailable,
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kinds() {
        assert_eq!(code_kind("40P01"), ErrorKind::Conflict);
        assert_eq!(code_kind("42P01"), ErrorKind::Schema);
        assert_eq!(code_kind("53300"), ErrorKind::Unavailable);
        assert_eq!(code_kind("57P01"), ErrorKind::Unavailable);
        assert_eq!(code_kind("23505"), ErrorKind::Other);
    }

    #[test]
    fn a_pool_without_connections_is_unavailable() {
        let error = classify("claim", SqlxError::PoolTimedOut);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
