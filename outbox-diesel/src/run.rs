//! Running statements on asynchronous and on plain connections.

use std::future::Future;

use diesel::QueryResult;
use diesel::connection::LoadConnection;
use diesel::expression::QueryMetadata;
use diesel::result::Error as DieselError;
use diesel::sql_types::Untyped;
use diesel_async::AsyncConnectionCore;
use futures::{FutureExt, TryStreamExt};
use outbox_core::{Error, ErrorKind};

#[cfg(feature = "postgres")]
use crate::read::{As, FromRow};
use crate::read::{Columns, ReadRows, Reader};
use crate::statement::{Bind, Statement};

/// The rows that a statement returns.
#[cfg(feature = "postgres")]
pub(crate) async fn rows<C, V, T>(conn: &mut C, statement: Statement<'_, V>) -> QueryResult<Vec<T>>
where
    C: AsyncConnectionCore,
    C::Backend: Columns,
    V: Bind<C::Backend>,
    T: FromRow<C::Backend>,
{
    read(conn, statement, &As::new()).await
}

/// The rows that a statement returns, read as `shape` says.
pub(crate) async fn read<C, V, S>(
    conn: &mut C,
    statement: Statement<'_, V>,
    shape: &S,
) -> QueryResult<Vec<S::Out>>
where
    C: AsyncConnectionCore,
    C::Backend: Columns,
    V: Bind<C::Backend>,
    S: ReadRows<C::Backend>,
{
    let mut out = Vec::new();
    let mut stream = std::pin::pin!(conn.load(statement).await?);
    while let Some(row) = stream.try_next().await? {
        let row = shape.read(&mut Reader::new(&row));
        out.push(row.map_err(DieselError::DeserializationError)?);
    }
    Ok(out)
}

/// Runs a statement; returns how many rows it changed.
pub(crate) async fn execute<C, V>(conn: &mut C, statement: Statement<'_, V>) -> QueryResult<u64>
where
    C: AsyncConnectionCore,
    V: Bind<C::Backend>,
{
    let changed = conn.execute_returning_count(statement).await?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

/// [`read`] on a plain connection.
pub(crate) fn read_sync<C, V, S>(
    conn: &mut C,
    statement: Statement<'_, V>,
    shape: &S,
) -> QueryResult<Vec<S::Out>>
where
    C: LoadConnection,
    C::Backend: Columns + QueryMetadata<Untyped>,
    V: Bind<C::Backend>,
    S: ReadRows<C::Backend>,
{
    conn.load(statement)?
        .map(|row| {
            let row = row?;
            let row = shape.read(&mut Reader::new(&row));
            row.map_err(DieselError::DeserializationError)
        })
        .collect()
}

/// [`execute`] on a plain connection.
pub(crate) fn execute_sync<C, V>(conn: &mut C, statement: &Statement<'_, V>) -> QueryResult<u64>
where
    C: LoadConnection,
    V: Bind<C::Backend>,
{
    let changed = conn.execute_returning_count(statement)?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

/// What runs statements, whichever way.
pub(crate) trait Runs: Send {
    type Backend: Columns;

    /// As [`read`].
    fn read<V, S>(
        &mut self,
        statement: Statement<'_, V>,
        shape: &S,
    ) -> impl Future<Output = QueryResult<Vec<S::Out>>> + Send
    where
        V: Bind<Self::Backend> + Send + Sync,
        S: ReadRows<Self::Backend>;

    /// As [`execute`].
    fn execute<V>(
        &mut self,
        statement: Statement<'_, V>,
    ) -> impl Future<Output = QueryResult<u64>> + Send
    where
        V: Bind<Self::Backend> + Send + Sync;

    /// Runs statements without values, by the simple protocol.
    fn batch(&mut self, statements: &str) -> impl Future<Output = QueryResult<()>> + Send;
}

/// An asynchronous connection.
pub(crate) struct Asynchronous<'c, C>(pub(crate) &'c mut C);

impl<C> Runs for Asynchronous<'_, C>
where
    C: AsyncConnectionCore,
    C::Backend: Columns,
{
    type Backend = C::Backend;

    async fn read<V, S>(
        &mut self,
        statement: Statement<'_, V>,
        shape: &S,
    ) -> QueryResult<Vec<S::Out>>
    where
        V: Bind<Self::Backend> + Send + Sync,
        S: ReadRows<Self::Backend>,
    {
        read(self.0, statement, shape).await
    }

    async fn execute<V>(&mut self, statement: Statement<'_, V>) -> QueryResult<u64>
    where
        V: Bind<Self::Backend> + Send + Sync,
    {
        execute(self.0, statement).await
    }

    async fn batch(&mut self, statements: &str) -> QueryResult<()> {
        self.0.batch_execute(statements).await
    }
}

/// A plain connection. It blocks: its futures are ready when they are first polled.
pub(crate) struct Plain<'c, C>(pub(crate) &'c mut C);

impl<C> Runs for Plain<'_, C>
where
    C: LoadConnection,
    C::Backend: Columns + QueryMetadata<Untyped>,
{
    type Backend = C::Backend;

    async fn read<V, S>(
        &mut self,
        statement: Statement<'_, V>,
        shape: &S,
    ) -> QueryResult<Vec<S::Out>>
    where
        V: Bind<Self::Backend> + Send + Sync,
        S: ReadRows<Self::Backend>,
    {
        read_sync(self.0, statement, shape)
    }

    async fn execute<V>(&mut self, statement: Statement<'_, V>) -> QueryResult<u64>
    where
        V: Bind<Self::Backend> + Send + Sync,
    {
        execute_sync(self.0, &statement)
    }

    async fn batch(&mut self, statements: &str) -> QueryResult<()> {
        self.0.batch_execute(statements)
    }
}

/// The answer of a future over [`Plain`] connections.
pub(crate) fn blocking<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let waits = || {
        Error::new(
            ErrorKind::Other,
            "a plain connection waited without blocking",
        )
    };
    answer.now_or_never().unwrap_or_else(|| Err(waits()))
}
