//! What SQLite's errors mean.

use outbox_core::{Error, ErrorKind};
use sqlx::Error as SqlxError;

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: SqlxError) -> Error {
    let kind = match &error {
        SqlxError::Io(_)
        | SqlxError::PoolTimedOut
        | SqlxError::PoolClosed
        | SqlxError::WorkerCrashed => ErrorKind::Unavailable,
        SqlxError::Database(database) => {
            let message = database.message();
            if message.contains("UNIQUE constraint failed") && message.contains("_events.id") {
                return Error::invalid_event("id", "belongs to an event that is still open")
                    .with_source(error);
            }
            let code = database.code().and_then(|code| code.parse().ok());
            code_kind(code.unwrap_or_default(), message)
        }
        _ => ErrorKind::Other,
    };
    let message = match kind {
        ErrorKind::Schema => format!(
            "{operation}: the outbox tables are missing or of another version; \
             `SqliteStore::migrate` brings them up to date"
        ),
        ErrorKind::Unavailable => format!("{operation}: the database file can't be used"),
        ErrorKind::Conflict => format!("{operation}: another writer was in the way"),
        _ => format!("{operation} failed"),
    };
    Error::new(kind, message).with_source(error)
}

/// By (extended) result code: <https://sqlite.org/rescode.html>. A missing table has no code of its
/// own, only a text.
fn code_kind(code: i32, message: &str) -> ErrorKind {
    match code & 0xff {
        // SQLITE_BUSY, SQLITE_LOCKED
        5 | 6 => ErrorKind::Conflict,
        // SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_PROTOCOL
        8 | 10 | 13 | 14 | 15 => ErrorKind::Unavailable,
        _ if ["no such table", "no such column", "has no column"]
            .iter()
            .any(|text| message.contains(text)) =>
        {
            ErrorKind::Schema
        }
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kinds() {
        assert_eq!(code_kind(5, "database is locked"), ErrorKind::Conflict);
        assert_eq!(code_kind(517, "database is locked"), ErrorKind::Conflict);
        assert_eq!(
            code_kind(1, "no such table: outbox_events"),
            ErrorKind::Schema
        );
        assert_eq!(code_kind(14, "unable to open"), ErrorKind::Unavailable);
        assert_eq!(code_kind(1, "syntax error"), ErrorKind::Other);
    }
}
