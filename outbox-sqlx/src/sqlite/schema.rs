//! Migrating, and checking that it was done.

use outbox_core::Error;
use outbox_core::sql::TableNames;
use outbox_core::sql::sqlite::SCHEMA_VERSION;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Error as SqlxError, Row};

use super::SqliteStore;
use super::error::classify;
use crate::query;

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
        self.migrate_in(&mut tx)
            .await
            .map_err(|error| classify("migrate", error))?;
        tx.commit()
            .await
            .map_err(|error| classify("migrate", error))
    }

    async fn migrate_in(&self, conn: &mut SqliteConnection) -> Result<(), SqlxError> {
        query(&self.sql.create_migrations)
            .execute(&mut *conn)
            .await?;
        let done = self.version(conn).await?;
        for step in self
            .sql
            .migrations
            .iter()
            .filter(|step| step.version > done)
        {
            sqlx::raw_sql(AssertSqlSafe(step.sql.as_str()))
                .execute(&mut *conn)
                .await?;
        }
        Ok(())
    }

    async fn version(&self, conn: &mut SqliteConnection) -> Result<i32, SqlxError> {
        let row = query(&self.sql.version).fetch_one(conn).await?;
        Ok(row.try_get::<Option<i32>, _>(0)?.unwrap_or(0))
    }

    /// Checks that the tables are there and of a version that this library works on.
    ///
    /// # Errors
    ///
    /// [`Schema`](outbox_core::ErrorKind::Schema) where they are not; else as
    /// [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn check_schema(&self) -> Result<(), Error> {
        let failed = |error| classify("check_schema", error);
        let mut conn = self.pool.acquire().await.map_err(failed)?;
        let version = self.version(&mut conn).await.map_err(failed)?;
        outbox_core::sql::check_version(version, SCHEMA_VERSION, "SqliteStore::migrate")
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}
