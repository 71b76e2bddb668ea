//! What sqlx's errors mean, whatever the database.

use outbox_core::ErrorKind;
use sqlx::Error as SqlxError;

/// The kind of an error that is not the database's own.
pub(crate) const fn kind(error: &SqlxError) -> ErrorKind {
    match error {
        SqlxError::Io(_)
        | SqlxError::Tls(_)
        | SqlxError::PoolTimedOut
        | SqlxError::PoolClosed
        | SqlxError::WorkerCrashed
        | SqlxError::Protocol(_) => ErrorKind::Unavailable,
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_without_connections_is_unavailable() {
        assert_eq!(kind(&SqlxError::PoolTimedOut), ErrorKind::Unavailable);
    }
}
