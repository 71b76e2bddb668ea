//! Migrating, and checking that it was done.

use outbox_core::Error;
use outbox_core::sql::{Session, TableNames, sqlite};

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
    /// A dropped call migrates all the same.
    pub async fn migrate(&self) -> Result<(), Error> {
        self.on_pool("migrate", (), |store, session, ()| {
            Box::pin(async move {
                session.batch("BEGIN IMMEDIATE").await?;
                let mut done = sqlite::migrate(session, &store.sql).await;
                if done.is_ok() {
                    done = session.batch("COMMIT").await;
                }
                if done.is_err() {
                    // There may be nothing left to roll back.
                    session.batch("ROLLBACK").await.ok();
                }
                done
            })
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
            Box::pin(sqlite::check_schema(session, &store.sql, MIGRATE))
        })
        .await
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}
