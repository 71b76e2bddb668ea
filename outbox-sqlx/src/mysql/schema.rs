//! Migrating, and checking that it was done.

use outbox_core::Error;
use outbox_core::sql::{TableNames, mysql};
use sqlx::Connection as _;

use super::MySqlStore;
use super::error::classify;
use super::session::Connection;

impl MySqlStore {
    /// Makes or updates the tables, and the database that they are in where one was named. Many
    /// processes may call it at once. Migrations only go forward. To migrate with another tool, see
    /// [`outbox_core::sql::mysql::migrations`].
    ///
    /// # Errors
    ///
    /// As [`OutboxStore`](outbox_core::OutboxStore); [`Other`](outbox_core::ErrorKind::Other) where the user may
    /// not create tables.
    ///
    /// # Cancel safety
    ///
    /// Each statement commits by itself: a dropped or failed call has made some of the tables, and
    /// the next one goes on. It uses a connection of its own beside the pool's.
    pub async fn migrate(&self) -> Result<(), Error> {
        // The lock belongs to the connection, which therefore never returns to the pool.
        let failed = |error| classify("migrate", error);
        let mut conn = self.pool.acquire().await.map_err(failed)?.detach();
        let mut session = Connection::new(&mut conn, "migrate");
        mysql::migrate(&mut session, &self.sql).await?;
        conn.close().await.map_err(failed)
    }

    /// Checks that the tables are there and of a version that this library works on.
    ///
    /// # Errors
    ///
    /// [`Schema`](outbox_core::ErrorKind::Schema) where they are not; else as
    /// [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn check_schema(&self) -> Result<(), Error> {
        let mut session = self.connection("check_schema").await?;
        mysql::check_schema(&mut session, &self.sql, "MySqlStore::migrate").await
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}
