//! Running statements on asynchronous and on plain connections.

use diesel::QueryResult;
use diesel::connection::LoadConnection;
use diesel::expression::QueryMetadata;
use diesel::result::Error;
use diesel::sql_types::Untyped;
use diesel_async::AsyncConnectionCore;
use futures::TryStreamExt;

use crate::read::{Columns, FromRow, Reader};
use crate::statement::{Bind, Statement};

/// The rows that a statement returns.
pub(crate) async fn rows<C, V, T>(conn: &mut C, statement: Statement<'_, V>) -> QueryResult<Vec<T>>
where
    C: AsyncConnectionCore,
    C::Backend: Columns,
    V: Bind<C::Backend>,
    T: FromRow + Send,
{
    let mut out = Vec::new();
    let mut stream = std::pin::pin!(conn.load(statement).await?);
    while let Some(row) = stream.try_next().await? {
        out.push(T::from_row(&mut Reader::new(&row)).map_err(Error::DeserializationError)?);
    }
    Ok(out)
}

/// Runs a statement; returns how many rows it changed.
pub(crate) async fn execute<C, V>(conn: &mut C, statement: Statement<'_, V>) -> QueryResult<usize>
where
    C: AsyncConnectionCore,
    V: Bind<C::Backend>,
{
    conn.execute_returning_count(statement).await
}

/// The rows that a statement returns, on a plain connection.
pub(crate) fn rows_sync<C, V, T>(conn: &mut C, statement: Statement<'_, V>) -> QueryResult<Vec<T>>
where
    C: LoadConnection,
    C::Backend: Columns + QueryMetadata<Untyped>,
    V: Bind<C::Backend>,
    T: FromRow,
{
    conn.load(statement)?
        .map(|row| T::from_row(&mut Reader::new(&row?)).map_err(Error::DeserializationError))
        .collect()
}
