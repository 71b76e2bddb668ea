//! Migrating, and checking that it was done.

use outbox_core::Error;
use outbox_core::sql::{TableNames, mysql};

use super::{MIGRATE, MySqlStore};

impl MySqlStore {
    /// Makes or updates the tables, and the database that they are in where one was named. Many
    /// processes may call it at once. Migrations only go forward. To migrate with another tool, see
    /// [`outbox_core::sql::mysql::migrations`].
    ///
    /// # Errors
    ///
    /// As [`OutboxStore`](outbox_core::OutboxStore); [`Other`](outbox_core::ErrorKind::Other) where
    /// the user may not create tables.
    ///
    /// # Cancel safety
    ///
    /// A dropped call migrates all the same. Each statement commits by itself: a failed call has made
    /// some of the tables, and the next one goes on.
    pub async fn migrate(&self) -> Result<(), Error> {
        self.on_pool("migrate", (), |store, session, ()| {
            Box::pin(mysql::migrate(session, &store.sql))
        })
        .await
    }

    /// Checks that the tables are there and of a version that this library works on.
    ///
    /// # Errors
    ///
    /// [`Schema`](outbox_core::ErrorKind::Schema) where they are not; else as
    /// [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn check_schema(&self) -> Result<(), Error> {
        self.on_pool("check_schema", (), |store, session, ()| {
            Box::pin(mysql::check_schema(session, &store.sql, MIGRATE))
        })
        .await
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}
