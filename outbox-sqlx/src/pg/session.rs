//! Statements on pooled connections, in autocommit mode or in a transaction of their own.

use outbox_core::Error;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Executor, Postgres};

use super::PgStore;
use super::error::classify;

/// A statement with its values.
pub(super) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// A pooled connection for one call. [`end`](Self::end) it: a session that is dropped in a
/// transaction (its call failed or was cut short) takes its connection out of the pool and closes
/// it.
pub(super) struct Session {
    conn: Option<PoolConnection<Postgres>>,
    operation: &'static str,
    in_transaction: bool,
}

impl Session {
    /// The rows that a statement returns.
    pub(super) async fn fetch_all(
        &mut self,
        statement: Statement<'_>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let Some(conn) = &mut self.conn else {
            return Err(sqlx::Error::PoolClosed);
        };
        let statement = statement.persistent(!self.in_transaction);
        statement.fetch_all(&mut **conn).await
    }

    /// The one row that a statement returns.
    pub(super) async fn fetch_one(
        &mut self,
        statement: Statement<'_>,
    ) -> Result<PgRow, sqlx::Error> {
        let row = self.fetch_all(statement).await?.pop();
        row.ok_or(sqlx::Error::RowNotFound)
    }

    /// How many rows a statement changes.
    async fn execute(&mut self, statement: Statement<'_>) -> Result<u64, sqlx::Error> {
        let Some(conn) = &mut self.conn else {
            return Err(sqlx::Error::PoolClosed);
        };
        let statement = statement.persistent(!self.in_transaction);
        let done = statement.execute(&mut **conn).await?;
        Ok(done.rows_affected())
    }

    /// Commits where a transaction is open, and gives the connection back.
    pub(super) async fn end(mut self) -> Result<(), Error> {
        if self.in_transaction {
            self.control("COMMIT").await?;
            self.in_transaction = false;
        }
        Ok(())
    }

    /// A statement without values, by the simple query protocol: nothing is prepared.
    async fn control(&mut self, sql: &'static str) -> Result<(), Error> {
        if let Some(conn) = &mut self.conn {
            let done = conn.execute(sqlx::raw_sql(sql)).await;
            done.map_err(|error| classify(self.operation, error))?;
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.in_transaction {
            drop(self.conn.take().map(PoolConnection::detach));
        }
    }
}

impl PgStore {
    pub(super) async fn session(&self, operation: &'static str) -> Result<Session, Error> {
        let conn = self.pool.acquire().await;
        let mut session = Session {
            conn: Some(conn.map_err(|error| classify(operation, error))?),
            operation,
            in_transaction: self.in_transactions,
        };
        if self.in_transactions {
            session
                .control("BEGIN ISOLATION LEVEL READ COMMITTED")
                .await?;
        }
        Ok(session)
    }

    /// The rows that a statement returns.
    pub(super) async fn fetch_all(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<Vec<PgRow>, Error> {
        let mut session = self.session(operation).await?;
        let rows = session
            .fetch_all(statement)
            .await
            .map_err(|error| classify(operation, error))?;
        session.end().await?;
        Ok(rows)
    }

    /// The one row that a statement returns.
    pub(super) async fn fetch_one(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<PgRow, Error> {
        let row = self.fetch_all(operation, statement).await?.pop();
        row.ok_or_else(|| classify(operation, sqlx::Error::RowNotFound))
    }

    /// How many rows a statement changes.
    pub(super) async fn changed(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<u64, Error> {
        let mut session = self.session(operation).await?;
        let rows = session
            .execute(statement)
            .await
            .map_err(|error| classify(operation, error))?;
        session.end().await?;
        Ok(rows)
    }
}
