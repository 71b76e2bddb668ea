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
    T: FromRow<C::Backend> + Send,
{
    let mut out = Vec::new();
    let mut stream = std::pin::pin!(conn.load(statement).await?);
    while let Some(row) = stream.try_next().await? {
        out.push(T::from_row(&mut Reader::new(&row)).map_err(Error::DeserializationError)?);
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

/// [`rows`] on a plain connection.
pub(crate) fn rows_sync<C, V, T>(conn: &mut C, statement: Statement<'_, V>) -> QueryResult<Vec<T>>
where
    C: LoadConnection,
    C::Backend: Columns + QueryMetadata<Untyped>,
    V: Bind<C::Backend>,
    T: FromRow<C::Backend>,
{
    conn.load(statement)?
        .map(|row| T::from_row(&mut Reader::new(&row?)).map_err(Error::DeserializationError))
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
