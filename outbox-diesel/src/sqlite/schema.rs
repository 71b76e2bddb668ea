//! Migrating, and checking that it was done.

use diesel::connection::SimpleConnection;
use diesel::deserialize;
use diesel::row::Row;
use diesel::sqlite::Sqlite;
use diesel::{QueryResult, SqliteConnection};
use outbox_core::Error;
use outbox_core::sql::TableNames;
use outbox_core::sql::sqlite::SCHEMA_VERSION;

use super::{SqliteStore, execute, row};
use crate::read::{Columns, FromRow, Reader};

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
    /// A dropped call migrates all the same.
    pub async fn migrate(&self) -> Result<(), Error> {
        self.on_pool("migrate", |store, conn| {
            conn.immediate_transaction(|conn| store.migrate_in(conn))
        })
        .await
    }

    fn migrate_in(&self, conn: &mut SqliteConnection) -> QueryResult<()> {
        execute(conn, &self.sql.create_migrations, Vec::new())?;
        let done = self.version(conn)?;
        self.sql
            .migrations
            .iter()
            .filter(|step| step.version > done)
            .try_for_each(|step| conn.batch_execute(&step.sql))
    }

    fn version(&self, conn: &mut SqliteConnection) -> QueryResult<i32> {
        row(conn, &self.sql.version, Vec::new()).map(|Version(found)| found.unwrap_or(0))
    }

    /// Checks that the tables are there and of a version that this library works on.
    ///
    /// # Errors
    ///
    /// [`Schema`](outbox_core::ErrorKind::Schema) where they are not; else as
    /// [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn check_schema(&self) -> Result<(), Error> {
        let version = self.on_pool("check_schema", Self::version).await?;
        outbox_core::sql::check_version(version, SCHEMA_VERSION, "SqliteStore::migrate")
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}

struct Version(Option<i32>);

impl FromRow<Sqlite> for Version {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        row: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        row.maybe(Sqlite::integer).map(Self)
    }
}
