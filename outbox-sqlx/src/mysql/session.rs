//! Running statements on a connection.

use std::ops::DerefMut;

use outbox_core::sql::Sql;
use outbox_core::sql::mysql::{Cell, Letter, Row, Session, Value};
use outbox_core::{Error, async_trait};
use sqlx::mysql::{MySqlArguments, MySqlConnection};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, MySql};

use super::error::classify;
use super::row::{cells, letter};
use crate::query;

/// A connection, and what to say where it fails.
pub(super) struct Connection<C> {
    conn: C,
    operation: &'static str,
}

impl<C> Connection<C> {
    pub(super) const fn new(conn: C, operation: &'static str) -> Self {
        Self { conn, operation }
    }

    pub(super) fn into_inner(self) -> C {
        self.conn
    }
}

#[async_trait]
impl<C: DerefMut<Target = MySqlConnection> + Send> Session for Connection<C> {
    async fn batch(&mut self, statements: &str) -> Result<(), Error> {
        let done = sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(&mut *self.conn)
            .await;
        done.map(drop)
            .map_err(|error| classify(self.operation, error))
    }

    async fn execute(&mut self, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error> {
        let done = bound(sql, values).execute(&mut *self.conn).await;
        done.map(|done| done.rows_affected())
            .map_err(|error| classify(self.operation, error))
    }

    async fn fetch(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        columns: &[Cell],
    ) -> Result<Vec<Row>, Error> {
        let rows = bound(sql, values).fetch_all(&mut *self.conn).await;
        rows.and_then(|rows| rows.iter().map(|row| cells(row, 0, columns)).collect())
            .map_err(|error| classify(self.operation, error))
    }

    async fn events(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        columns: &[Cell],
    ) -> Result<Vec<Letter>, Error> {
        let rows = bound(sql, values).fetch_all(&mut *self.conn).await;
        rows.and_then(|rows| rows.iter().map(|row| letter(row, columns)).collect())
            .map_err(|error| classify(self.operation, error))
    }
}

fn bound<'q>(sql: &'q Sql, values: &[Value<'_>]) -> Query<'q, MySql, MySqlArguments> {
    values.iter().fold(query(sql), |query, value| match *value {
        Value::NoInt => query.bind(None::<i64>),
        Value::NoText => query.bind(None::<String>),
        Value::NoBytes => query.bind(None::<Vec<u8>>),
        Value::Int(number) => query.bind(number),
        Value::Text(text) => query.bind(text.to_owned()),
        Value::Bytes(bytes) => query.bind(bytes.to_owned()),
    })
}
