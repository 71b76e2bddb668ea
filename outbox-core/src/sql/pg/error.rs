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

/// The error of a claim on a session whose isolation level is another than READ COMMITTED, which
/// `message` says (in the words of our own function, which no server translates).
#[must_use]
pub fn isolation_problem(operation: &str, message: &str) -> Option<Error> {
    message.contains("needs READ COMMITTED").then(|| {
        let problem = format!(
            "{operation}: a store's sessions must be READ COMMITTED: \
             `ALTER ROLE … SET default_transaction_isolation = 'read committed'`"
        );
        Error::new(ErrorKind::Other, problem)
    })
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
}
