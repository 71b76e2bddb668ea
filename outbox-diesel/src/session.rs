//! Running statements on a connection.

use std::future::Future;

use diesel::QueryResult;
use diesel::result::Error as DieselError;
#[cfg(any(feature = "postgres", feature = "mysql"))]
use futures::future::BoxFuture;
use outbox_core::sql::{Cell, Letter, Row, Session, Sql, Value};
use outbox_core::{Error, async_trait};

use crate::cells::{Cells, Letters};
use crate::read::Columns;
#[cfg(any(feature = "postgres", feature = "mysql"))]
use crate::run::Asynchronous;
use crate::run::Runs;
use crate::statement::{Bind, Statement};

/// A database whose calls are written in the core.
pub(crate) trait Dialect: Columns {
    /// Values as they are bound.
    type Bound<'q>: From<Value<'q>> + Bind<Self> + Send + Sync;

    /// The core's error for an `operation` that failed on this connection just now.
    fn classify<C: Runs<Backend = Self>>(
        conn: &mut C,
        operation: &'static str,
        error: DieselError,
    ) -> impl Future<Output = Error> + Send;
}

/// A connection, and what to say where it fails.
pub(crate) struct Connection<C> {
    conn: C,
    operation: &'static str,
}

/// What a call of a store makes of its argument on an asynchronous connection.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) type Call<S, C, A, T> = for<'a, 'c> fn(
    &'a S,
    &'a mut Connection<Asynchronous<'c, C>>,
    &'a A,
) -> BoxFuture<'a, Result<T, Error>>;

impl<C: Runs<Backend: Dialect>> Connection<C> {
    pub(crate) const fn new(conn: C, operation: &'static str) -> Self {
        Self { conn, operation }
    }

    #[cfg(feature = "mysql")]
    pub(crate) const fn connection(&mut self) -> &mut C {
        &mut self.conn
    }

    /// The answer of a statement that was made just now.
    pub(crate) async fn answer<T>(&mut self, answer: QueryResult<T>) -> Result<T, Error> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(C::Backend::classify(&mut self.conn, self.operation, error).await),
        }
    }
}

#[async_trait]
impl<C: Runs<Backend: Dialect>> Session for Connection<C> {
    async fn batch(&mut self, statements: &str) -> Result<(), Error> {
        let done = self.conn.batch(statements).await;
        self.answer(done).await
    }

    async fn execute(&mut self, sql: &Sql, values: &[Value<'_>]) -> Result<u64, Error> {
        let done = self
            .conn
            .execute(statement::<C::Backend>(sql, values))
            .await;
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
            .read(statement::<C::Backend>(sql, values), &Cells(columns))
            .await;
        self.answer(rows).await
    }

    async fn events(
        &mut self,
        sql: &Sql,
        values: &[Value<'_>],
        columns: &[Cell],
    ) -> Result<Vec<Letter>, Error> {
        let statement = statement::<C::Backend>(sql, values);
        let rows = self.conn.read(statement, &Letters(columns)).await;
        self.answer(rows).await
    }
}

fn statement<'q, DB: Dialect>(sql: &'q Sql, values: &[Value<'q>]) -> Statement<'q, DB::Bound<'q>> {
    Statement::new(sql, values.iter().copied().map(Into::into).collect())
}
