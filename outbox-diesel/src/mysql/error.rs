//! What MySQL's and MariaDB's errors mean.

use diesel::mysql::Mysql;
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use outbox_core::sql::mysql::number_kind;
use outbox_core::sql::{Cell, Value, failure, id_taken};
use outbox_core::{Error, ErrorKind};

use super::MIGRATE;
use crate::cells::Cells;
use crate::run::Runs;
use crate::session::Dialect;
use crate::statement::Statement;

/// Keeps the number that the last statement failed with: that of its last condition. By the simple
/// protocol, since MySQL prepares no statement on diagnostics. Fails where there is no condition.
const KEEP_NUMBER: &str = "GET DIAGNOSTICS @outbox_errno = NUMBER; \
    GET DIAGNOSTICS CONDITION @outbox_errno @outbox_errno = MYSQL_ERRNO";
const NUMBER: &str = "SELECT CAST(@outbox_errno AS SIGNED)";

impl Dialect for Mysql {
    type Bound<'q> = Value<'q>;

    async fn classify<C: Runs<Backend = Self>>(
        conn: &mut C,
        operation: &'static str,
        error: DieselError,
    ) -> Error {
        if let DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, information) = &error
            // MySQL writes the table before the index, MariaDB does not.
            && information.message().contains("open_event_id'")
        {
            return id_taken().with_source(error);
        }
        let kind = match kind(&error) {
            Some(kind) => kind,
            None => asked(conn).await,
        };
        failure(kind, operation, MIGRATE).with_source(error)
    }
}

/// What diesel itself tells of an error. It hands on no number.
fn kind(error: &DieselError) -> Option<ErrorKind> {
    match error {
        DieselError::DatabaseError(kind, _) => match kind {
            DatabaseErrorKind::Unknown => None,
            DatabaseErrorKind::SerializationFailure => Some(ErrorKind::Conflict),
            DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::ClosedConnection
            | DatabaseErrorKind::ReadOnlyTransaction => Some(ErrorKind::Unavailable),
            _ => Some(ErrorKind::Other),
        },
        DieselError::BrokenTransactionManager => Some(ErrorKind::Unavailable),
        DieselError::RollbackErrorOnCommit { commit_error, .. } => kind(commit_error),
        _ => Some(ErrorKind::Other),
    }
}

/// The kind of the last error, by its number, which the server is asked for. A connection that can't
/// be asked is lost.
async fn asked<C: Runs<Backend = Mysql>>(conn: &mut C) -> ErrorKind {
    // What this tells is seen below.
    let _ = conn.batch(KEEP_NUMBER).await;
    let ask = Statement::<Value<'_>>::new(NUMBER, Vec::new());
    match conn.read(ask, &Cells(&[Cell::Int])).await {
        Ok(rows) => {
            let number = rows.first().and_then(|row| row.ints.first().copied()?);
            let number = number.and_then(|number| u16::try_from(number).ok());
            number.map_or(ErrorKind::Other, number_kind)
        }
        Err(_) => ErrorKind::Unavailable,
    }
}
