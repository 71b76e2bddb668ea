//! What SQLite's errors mean.

use crate::sql::failure as general;
use crate::{Error, ErrorKind};

/// The kind of an error with this (extended) result code (<https://sqlite.org/rescode.html>), or none
/// where the driver hands on none, and this text. A missing table has no code of its own. Texts are
/// not translated (`sqlite3ErrStr` in SQLite's `main.c`).
#[must_use]
pub fn error_kind(code: Option<i32>, text: &str) -> ErrorKind {
    let any = |texts: &[&str]| texts.iter().any(|part| text.contains(part));
    match code.map(|code| code & 0xff) {
        // SQLITE_BUSY, SQLITE_LOCKED
        Some(5 | 6) => ErrorKind::Conflict,
        // SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_PROTOCOL
        Some(8 | 10 | 13 | 14 | 15) => ErrorKind::Unavailable,
        None if any(&["is locked"]) => ErrorKind::Conflict,
        None if any(&[
            "readonly database",
            "disk I/O error",
            "disk is full",
            "unable to open",
            "locking protocol",
        ]) =>
        {
            ErrorKind::Unavailable
        }
        _ if any(&["no such table", "no such column", "has no column"]) => ErrorKind::Schema,
        _ => ErrorKind::Other,
    }
}

/// The error of a failed `operation`, to which the adapter adds the cause. `migrate` names the call
/// that makes the tables. What runs in the caller's transaction may have met another writer because
/// of how that transaction began.
#[must_use]
pub fn failure(kind: ErrorKind, operation: &str, migrate: &str) -> Error {
    if kind == ErrorKind::Conflict && matches!(operation, "enqueue" | "accept") {
        let remedy = "another connection writes; a transaction that reads before it writes waits \
                      for others only where it began with BEGIN IMMEDIATE";
        return Error::new(kind, format!("{operation}: {remedy}"));
    }
    general(kind, operation, migrate)
}

/// Whether this is the text of an error about an id that belongs to an open event.
#[must_use]
pub fn is_id_taken(text: &str) -> bool {
    text.contains("UNIQUE constraint failed") && text.contains("_events.id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_texts_have_kinds() {
        let table = "no such table: outbox_events";
        for (code, text, kind) in [
            (Some(5), "database is locked", ErrorKind::Conflict),
            (Some(517), "database is locked", ErrorKind::Conflict),
            (None, "database is locked", ErrorKind::Conflict),
            (None, "database table is locked", ErrorKind::Conflict),
            (Some(1), table, ErrorKind::Schema),
            (None, table, ErrorKind::Schema),
            (Some(14), "unable to open", ErrorKind::Unavailable),
            (None, "unable to open database file", ErrorKind::Unavailable),
            (Some(1), "near \"x\": syntax error", ErrorKind::Other),
            (None, "near \"x\": syntax error", ErrorKind::Other),
        ] {
            assert_eq!(error_kind(code, text), kind, "{code:?} {text}");
        }
    }
}
