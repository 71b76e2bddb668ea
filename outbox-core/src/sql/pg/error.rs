//! What the codes of errors mean.

use crate::{Error, ErrorKind};

/// The kind of an error with this SQLSTATE (PostgreSQL documentation, appendix A).
#[must_use]
pub fn code_kind(code: &str) -> ErrorKind {
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

/// Whether a violated constraint of this name says that an id belongs to an open event.
#[must_use]
pub fn is_id_taken(constraint: Option<&str>) -> bool {
    constraint.is_some_and(|name| name.ends_with("_events_id"))
}

/// The error of a session that a store can't work with, which `message` or the code says: a claim on one
/// whose isolation level is another than READ COMMITTED (in the words of our own function, which no server
/// translates); one that a pooler hands to others between statements.
#[must_use]
pub fn session_problem(operation: &str, code: Option<&str>, message: &str) -> Option<Error> {
    let problem = if message.contains("needs READ COMMITTED") {
        "a store's sessions must be READ COMMITTED: \
         `ALTER ROLE … SET default_transaction_isolation = 'read committed'`"
    } else if is_of_others(code, message) {
        "a pooler in transaction mode that knows no prepared statements stands before the server: \
         let it have them (PgBouncer: 1.21 or newer, `max_prepared_statements`), use its session mode, \
         or build outbox-sqlx's store with `in_transactions(true)`"
    } else {
        return None;
    };
    Some(Error::new(
        ErrorKind::Other,
        format!("{operation}: {problem}"),
    ))
}

/// Whether a statement is another session's than ours, or missing: by the name, by how many values it takes,
/// or by their types. Where there is no code, and where it says little (PgBouncer has it for other things),
/// the text decides.
fn is_of_others(code: Option<&str>, message: &str) -> bool {
    match code {
        // invalid_sql_statement_name, duplicate_prepared_statement, invalid_binary_representation
        Some("26000" | "42P05" | "22P03") => true,
        // protocol_violation
        Some("08P01") | None => OF_OTHERS.iter().any(|text| message.contains(text)),
        Some(_) => false,
    }
}

const OF_OTHERS: [&str; 5] = [
    "prepared statement",
    "left in message",
    "message format",
    "binary data format",
    "invalid array flags",
];

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
    fn a_session_of_a_pooler_is_known_by_code_and_by_text() {
        let says = |code, text| session_problem("claim", code, text).map(|e| e.to_string());
        for (code, text) in [
            (Some("42P05"), "anweisung »s1« existiert bereits"),
            (None, "prepared statement \"s1\" does not exist"),
            (
                Some("08P01"),
                "bind message supplies 9 parameters, but prepared statement \"s1\" requires 10",
            ),
            (Some("08P01"), "insufficient data left in message"),
            (None, "insufficient data left in message"),
            (Some("22P03"), "ungültiges Binärdatenformat"),
            (None, "incorrect binary data format in bind parameter 2"),
        ] {
            assert!(says(code, text).is_some_and(|text| text.contains("max_prepared_statements")));
        }
        assert_eq!(says(Some("42P01"), "relation \"t\" does not exist"), None);
        assert_eq!(says(Some("08P01"), "query_wait_timeout"), None);
    }
}
