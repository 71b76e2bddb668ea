//! Migrating, and checking that it was done.

use outbox_core::Error;
use outbox_core::sql::TableNames;
use outbox_core::sql::pg::SCHEMA_VERSION;
use sqlx::{AssertSqlSafe, Row};

use super::PgStore;
use super::error::{MIGRATE, classify};
use crate::query;
use crate::retry::retried;

impl PgStore {
    /// Makes or updates the tables, and the schema that they are in. Many processes may call it at
    /// once. Migrations only go forward. To migrate with another tool, see
    /// [`outbox_core::sql::pg::migrations`].
    ///
    /// # Errors
    ///
    /// As [`OutboxStore`](outbox_core::OutboxStore); [`Other`](outbox_core::ErrorKind::Other) where the role may
    /// not create tables.
    ///
    /// # Cancel safety
    ///
    /// A dropped call has migrated all or nothing.
    pub async fn migrate(&self) -> Result<(), Error> {
        retried!(self.migrate_once())
    }

    async fn migrate_once(&self) -> Result<(), Error> {
        sqlx::raw_sql(AssertSqlSafe(self.sql.schema.migrate.clone()))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|error| classify("migrate", error))
    }

    /// Checks that the tables are there and of a version that this library works on.
    ///
    /// # Errors
    ///
    /// [`Schema`](outbox_core::ErrorKind::Schema) where they are not; else as
    /// [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn check_schema(&self) -> Result<(), Error> {
        let version = query(&self.sql.schema.version);
        let row = self.fetch_one("check_schema", version).await?;
        let version: i32 = row
            .try_get(0)
            .map_err(|error| classify("check_schema", error))?;
        outbox_core::sql::check_version(version, SCHEMA_VERSION, MIGRATE)
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}
