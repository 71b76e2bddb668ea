//! What SQLite's errors mean.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use outbox_core::{Error, ErrorKind};

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: DieselError) -> Error {
    if let DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, information) = &error
        && information.message().contains("_events.id")
    {
        return Error::invalid_event("id", "belongs to an event that is still open")
            .with_source(error);
    }
    let kind = kind(&error);
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

fn kind(error: &DieselError) -> ErrorKind {
    match error {
        DieselError::DatabaseError(DatabaseErrorKind::UnableToSendCommand, _)
        | DieselError::BrokenTransactionManager => ErrorKind::Unavailable,
        DieselError::DatabaseError(_, information) => text_kind(information.message()),
        DieselError::RollbackErrorOnCommit { commit_error, .. } => kind(commit_error),
        _ => ErrorKind::Other,
    }
}

/// By text: diesel hands on no result code. SQLite's texts are not translated
/// (`sqlite3ErrStr` in its `main.c`).
fn text_kind(message: &str) -> ErrorKind {
    let any = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if any(&["is locked"]) {
        ErrorKind::Conflict
    } else if any(&[
        "readonly database",
        "disk I/O error",
        "disk is full",
        "unable to open",
        "locking protocol",
    ]) {
        ErrorKind::Unavailable
    } else if any(&["no such table", "no such column", "has no column"]) {
        ErrorKind::Schema
    } else {
        ErrorKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_kinds() {
        for (text, kind) in [
            ("database is locked", ErrorKind::Conflict),
            ("database table is locked", ErrorKind::Conflict),
            ("no such table: outbox_events", ErrorKind::Schema),
            ("unable to open database file", ErrorKind::Unavailable),
            ("near \"x\": syntax error", ErrorKind::Other),
        ] {
            assert_eq!(text_kind(text), kind, "{text}");
        }
    }
}
