//! Running statements on a connection.

use diesel::QueryResult;
use diesel::mysql::Mysql;
use outbox_core::sql::Sql;
use outbox_core::sql::mysql::{Cell, Letter, Row, Session, Value};
use outbox_core::{Error, async_trait};

use super::error::classify;
use super::row::{Cells, Letters};
use crate::run::Runs;
use crate::statement::Statement;

/// A connection, and what to say where it fails.
pub(super) struct Connection<C> {
    conn: C,
    operation: &'static str,
}

impl<C: Runs<Mysql>> Connection<C> {
    pub(super) const fn new(conn: C, operation: &'static str) -> Self {
        Self { conn, operation }
    }

    pub(super) const fn connection(&mut self) -> &mut C {
        &mut self.conn
    }

    /// The answer of a statement that was made just now.
    pub(super) async fn answer<T>(&mut self, answer: QueryResult<T>) -> Result<T, Error> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(classify(&mut self.conn, self.operation, error).await),
        }
    }
}

#[async_trait]
impl<C: Runs<Mysql>> Session for Connection<C> {
    async fn batch(&mut self, statements: &str) -> Result<(), Error> {
        let done = self.conn.batch(statements).await;
        self.answer(done).await
    }

    async fn execute(&mut self, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error> {
        let done = self.conn.execute(statement(sql, values)).await;
        self.answer(done).await
    }

    async fn fetch(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        columns: &[Cell],
    ) -> Result<Vec<Row>, Error> {
        let rows = self
            .conn
            .read(statement(sql, values), &Cells(columns))
            .await;
        self.answer(rows).await
    }

    async fn events(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        columns: &[Cell],
    ) -> Result<Vec<Letter>, Error> {
        let statement = statement(sql, values);
        let rows = self.conn.read(statement, &Letters(columns)).await;
        self.answer(rows).await
    }
}

fn statement<'q>(sql: &'q Sql, values: &[Value<'q>]) -> Statement<'q, Value<'q>> {
    Statement::new(sql, values.to_vec())
}
