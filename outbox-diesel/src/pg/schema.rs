//! Migrating, and checking that it was done.

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use diesel_async::SimpleAsyncConnection;
use outbox_core::Error;
use outbox_core::sql::TableNames;
use outbox_core::sql::pg::SCHEMA_VERSION;

use super::error::{MIGRATE, classify};
use super::{PgStore, retried, row};
use crate::read::{Columns, FromRow, Reader};

impl PgStore {
    /// Makes or updates the tables, and the schema that they are in. Many processes may call it at
    /// once. Migrations only go forward. To migrate with another tool, see
    /// [`outbox_core::sql::pg::migrations`].
    ///
    /// # Errors
    ///
    /// As [`OutboxStore`](outbox_core::OutboxStore); [`Other`](outbox_core::ErrorKind::Other) where
    /// the role may not create tables.
    ///
    /// # Cancel safety
    ///
    /// A dropped call has migrated all or nothing.
    pub async fn migrate(&self) -> Result<(), Error> {
        retried!(self.migrate_once())
    }

    async fn migrate_once(&self) -> Result<(), Error> {
        self.connection()
            .await?
            .batch_execute(&self.sql.schema.migrate)
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
        let mut conn = self.connection().await?;
        let sql = &self.sql.schema.version;
        let Version(found) = row(&mut conn, "check_schema", sql, Vec::new()).await?;
        outbox_core::sql::check_version(found, SCHEMA_VERSION, MIGRATE)
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}

struct Version(i32);

impl FromRow<Pg> for Version {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        row.get(Pg::integer).map(Self)
    }
}
