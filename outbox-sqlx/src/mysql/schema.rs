//! Migrating, and checking that it was done.

use outbox_core::sql::TableNames;
use outbox_core::sql::mysql::{Cell, SCHEMA_VERSION, Session};
use outbox_core::{Error, ErrorKind};
use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::MySqlStore;
use super::error::classify;
use super::session::Connection;

const OPERATION: &str = "migrate";

impl MySqlStore {
    /// Makes or updates the tables, and the database that they are in where one was named. Many
    /// processes may call it at once. Migrations only go forward. To migrate with another tool, see
    /// [`outbox_core::sql::mysql::migrations`].
    ///
    /// # Errors
    ///
    /// As [`OutboxStore`](outbox_core::OutboxStore); [`Other`](ErrorKind::Other) where the user may
    /// not create tables.
    ///
    /// # Cancel safety
    ///
    /// Each statement commits by itself: a dropped or failed call has made some of the tables, and
    /// the next one goes on. It uses a connection of its own beside the pool's.
    pub async fn migrate(&self) -> Result<(), Error> {
        // The lock belongs to the connection, which therefore never returns to the pool.
        let failed = |error| classify(OPERATION, error);
        let mut conn = self.pool.acquire().await.map_err(failed)?.detach();
        self.migrate_on(&mut conn).await?;
        conn.close().await.map_err(failed)
    }

    async fn migrate_on(&self, conn: &mut MySqlConnection) -> Result<(), Error> {
        let sql = &self.sql.schema;
        let mut session = Connection::new(&mut *conn, OPERATION);
        let locked = session.fetch(&sql.lock, &[], &[Cell::Int]).await?;
        if locked.first().and_then(|row| row.ints[0]) != Some(1) {
            let problem = "migrate: another process has been migrating for a minute";
            return Err(Error::new(ErrorKind::Conflict, problem));
        }
        for statement in &sql.prepare {
            session.execute(statement, &[]).await?;
        }
        let done = version(&mut session, &sql.version).await?;
        for step in &sql.migrations {
            if step.version > done {
                sqlx::raw_sql(AssertSqlSafe(step.sql.as_str()))
                    .execute(&mut *conn)
                    .await
                    .map_err(|error| classify(OPERATION, error))?;
            }
        }
        let mut session = Connection::new(conn, OPERATION);
        session
            .fetch(&sql.unlock, &[], &[Cell::Int])
            .await
            .map(drop)
    }

    /// Checks that the tables are there and of a version that this library works on.
    ///
    /// # Errors
    ///
    /// [`Schema`](ErrorKind::Schema) where they are not; else as
    /// [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn check_schema(&self) -> Result<(), Error> {
        let mut session = self.connection("check_schema").await?;
        let version = version(&mut session, &self.sql.schema.version).await?;
        outbox_core::sql::check_version(version, SCHEMA_VERSION, "MySqlStore::migrate")
    }

    /// Where the tables are.
    #[must_use]
    pub const fn table_names(&self) -> &TableNames {
        &self.names
    }
}

async fn version<S: Session>(session: &mut S, sql: &outbox_core::sql::Sql) -> Result<i32, Error> {
    let rows = session.fetch(sql, &[], &[Cell::Int]).await?;
    let found = rows.first().and_then(|row| row.ints[0]).unwrap_or(0);
    Ok(i32::try_from(found).unwrap_or(i32::MAX))
}
