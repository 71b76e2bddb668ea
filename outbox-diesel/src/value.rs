//! What MySQL and SQLite take and send.

use std::time::SystemTime;

use diesel::QueryResult;
use diesel::backend::Backend;
use diesel::deserialize::{FromSql, Result};
use diesel::query_builder::AstPass;
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Binary, HasSqlType, Integer, Nullable, Text};
use outbox_core::clock::from_micros;
use outbox_core::sql::Value;

use crate::read::Columns;
use crate::statement::Bind;

/// A database without types of its own for ids and instants: bytes and numbers hold them.
pub(crate) trait Untyped:
    Backend + HasSqlType<BigInt> + HasSqlType<Text> + HasSqlType<Binary>
{
}

#[cfg(feature = "mysql")]
impl Untyped for diesel::mysql::Mysql {}
#[cfg(feature = "sqlite")]
impl Untyped for diesel::sqlite::Sqlite {}

/// Nulls have the type of what they stand for: diesel keeps a prepared statement for each
/// combination of types.
impl<DB: Untyped> Bind<DB> for Value<'_>
where
    i64: ToSql<BigInt, DB>,
    str: ToSql<Text, DB>,
    [u8]: ToSql<Binary, DB>,
{
    fn bind<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        match self {
            Self::NoInt => out.push_bind_param_value_only::<Nullable<BigInt>, _>(&None::<i64>),
            Self::NoText => out.push_bind_param_value_only::<Nullable<Text>, _>(&None::<&str>),
            Self::NoBytes => out.push_bind_param_value_only::<Nullable<Binary>, _>(&None::<&[u8]>),
            Self::Int(number) => out.push_bind_param_value_only::<BigInt, _>(number),
            Self::Text(text) => out.push_bind_param_value_only::<Text, _>(*text),
            Self::Bytes(bytes) => out.push_bind_param_value_only::<Binary, _>(*bytes),
            Self::Id(id) => out.push_bind_param_value_only::<Binary, _>(id.as_slice()),
        }
    }
}

impl<DB: Untyped> Columns for DB
where
    i32: FromSql<Integer, DB>,
    i64: FromSql<BigInt, DB>,
    String: FromSql<Text, DB>,
    Vec<u8>: FromSql<Binary, DB>,
{
    fn integer(value: DB::RawValue<'_>) -> Result<i32> {
        FromSql::<Integer, DB>::from_sql(value)
    }

    fn bigint(value: DB::RawValue<'_>) -> Result<i64> {
        FromSql::<BigInt, DB>::from_sql(value)
    }

    fn text(value: DB::RawValue<'_>) -> Result<String> {
        FromSql::<Text, DB>::from_sql(value)
    }

    fn bytes(value: DB::RawValue<'_>) -> Result<Vec<u8>> {
        FromSql::<Binary, DB>::from_sql(value)
    }

    fn uuid(value: DB::RawValue<'_>) -> Result<[u8; 16]> {
        Ok(Self::bytes(value)?.as_slice().try_into()?)
    }

    fn instant(value: DB::RawValue<'_>) -> Result<SystemTime> {
        Self::bigint(value).map(from_micros)
    }
}
