//! What MySQL's and MariaDB's errors mean.

use outbox_core::Error;
use outbox_core::sql::mysql::number_kind;
use outbox_core::sql::{failure, id_taken};
use sqlx::Error as SqlxError;
use sqlx::mysql::MySqlDatabaseError;

use crate::error::kind;

/// The core's error for a failed `operation`.
pub(super) fn classify(operation: &'static str, error: SqlxError) -> Error {
    let kind = match &error {
        SqlxError::Database(database) => {
            let number = database
                .try_downcast_ref::<MySqlDatabaseError>()
                .map_or(0, MySqlDatabaseError::number);
            // MySQL writes the table before the index, MariaDB does not.
            if number == 1062 && database.message().contains("open_event_id'") {
                return id_taken().with_source(error);
            }
            number_kind(number)
        }
        _ => kind(&error),
    };
    failure(kind, operation, "MySqlStore::migrate").with_source(error)
}
