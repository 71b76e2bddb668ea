//! What the numbers of errors mean.

use crate::ErrorKind;

/// The kind of an error with this number (MySQL server error reference; MariaDB's are the same up to
/// 1900).
#[must_use]
pub const fn number_kind(number: u16) -> ErrorKind {
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
}
