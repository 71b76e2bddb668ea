//! The transaction of a call. sqlx's own may leave one open on a pooled connection where `begin` is
//! dropped; this one closes the connection unless it came to its end.

use outbox_core::sql::mysql::BEGIN;
use outbox_core::sql::{Cell, Letter, Row, Session, Sql, Value};
use outbox_core::{Error, async_trait};
use sqlx::pool::PoolConnection;
use sqlx::{MySql, MySqlPool};

use super::error::classify;
use super::session::Connection;

/// An open transaction. Dropped before its [`end`](Self::end), it closes its connection, and the
/// server rolls back.
pub(super) struct Transaction {
    conn: Option<Connection<PoolConnection<MySql>>>,
    operation: &'static str,
}

impl Transaction {
    pub(super) async fn begin(pool: &MySqlPool, operation: &'static str) -> Result<Self, Error> {
        let conn = pool.acquire().await;
        let conn = conn.map_err(|error| classify(operation, error))?;
        let mut begun = Self {
            conn: Some(Connection::new(conn, operation)),
            operation,
        };
        begun.batch(BEGIN).await?;
        Ok(begun)
    }

    /// Commits where `outcome` is good, else rolls back; the connection returns to its pool.
    pub(super) async fn end<T>(mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        let ended = match outcome {
            Ok(_) => self.batch("COMMIT").await,
            Err(_) => self.batch("ROLLBACK").await,
        };
        match (outcome, ended) {
            (Ok(answer), Ok(())) => {
                self.finished();
                Ok(answer)
            }
            (Ok(_), Err(error)) => Err(error),
            (Err(error), ended) => {
                if ended.is_ok() {
                    self.finished();
                }
                Err(error)
            }
        }
    }

    fn finished(&mut self) {
        self.conn = None;
    }

    fn session(&mut self) -> Result<&mut Connection<PoolConnection<MySql>>, Error> {
        let closed = || classify(self.operation, sqlx::Error::PoolClosed);
        self.conn.as_mut().ok_or_else(closed)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            drop(conn.into_inner().detach());
        }
    }
}

#[async_trait]
impl Session for Transaction {
    async fn batch(&mut self, statements: &str) -> Result<(), Error> {
        self.session()?.batch(statements).await
    }

    async fn execute(&mut self, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error> {
        self.session()?.execute(sql, values).await
    }

    async fn fetch(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        cells: &[Cell],
    ) -> Result<Vec<Row>, Error> {
        self.session()?.fetch(sql, values, cells).await
    }

    async fn events(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        cells: &[Cell],
    ) -> Result<Vec<Letter>, Error> {
        self.session()?.events(sql, values, cells).await
    }
}
