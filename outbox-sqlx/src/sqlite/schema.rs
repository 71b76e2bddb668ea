//! Migrating, and checking that it was done.

use outbox_core::Error;
use outbox_core::sql::{TableNames, sqlite};

use super::error::classify;
use super::session::Connection;
use super::{MIGRATE, SqliteStore};

impl SqliteStore {
    /// Makes or updates the tables. Many processes may call it at once. Migrations only go forward.
    /// To migrate with another tool, see [`outbox_core::sql::sqlite::migrations`].
    ///
    /// # Errors
    ///
    /// As [`OutboxStore`](outbox_core::OutboxStore).
    ///
    /// # Cancel safety
    ///
    /// A dropped call has migrated all or nothing.
    pub async fn migrate(&self) -> Result<(), Error> {
        let mut tx = self.begin_immediate().await?;
        let mut session = Connection::new(&mut *tx, "migrate");
        sqlite::migrate(&mut session, &self.sql).await?;
        tx.commit()
            .await
            .map_err(|error| classify("migrate", error))
    }

    /// Checks that the tables are there and of a version that this library works on.
    ///
    /// # Errors
    ///
    /// [`Schema`](outbox_core::ErrorKind::Schema) where they are not; else as
    /// [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn check_schema(&self) -> Result<(), Error> {
        let mut session = self.connection("check_schema").await?;
        sqlite::check_schema(&mut session, &self.sql, MIGRATE).await
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}
