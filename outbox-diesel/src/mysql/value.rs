//! What MySQL takes and sends.

use std::time::SystemTime;

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql};
use diesel::mysql::{Mysql, MysqlValue};
use diesel::query_builder::AstPass;
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, Text};
use outbox_core::clock::from_micros;
use outbox_core::sql::Value;

use crate::read::Columns;
use crate::statement::Bind;

/// Nulls have the type of what they stand for: diesel keeps a prepared statement for each
/// combination of types.
impl Bind<Mysql> for Value<'_> {
    fn bind<'b>(&'b self, mut out: AstPass<'_, 'b, Mysql>) -> QueryResult<()> {
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

impl Columns for Mysql {
    #[cfg(feature = "postgres")]
    fn boolean(value: MysqlValue<'_>) -> deserialize::Result<bool> {
        FromSql::<diesel::sql_types::Bool, Self>::from_sql(value)
    }

    fn integer(value: MysqlValue<'_>) -> deserialize::Result<i32> {
        FromSql::<Integer, Self>::from_sql(value)
    }

    fn bigint(value: MysqlValue<'_>) -> deserialize::Result<i64> {
        FromSql::<BigInt, Self>::from_sql(value)
    }

    fn text(value: MysqlValue<'_>) -> deserialize::Result<String> {
        FromSql::<Text, Self>::from_sql(value)
    }

    fn bytes(value: MysqlValue<'_>) -> deserialize::Result<Vec<u8>> {
        FromSql::<Binary, Self>::from_sql(value)
    }

    fn uuid(value: MysqlValue<'_>) -> deserialize::Result<[u8; 16]> {
        Ok(Self::bytes(value)?.as_slice().try_into()?)
    }

    fn instant(value: MysqlValue<'_>) -> deserialize::Result<SystemTime> {
        Self::bigint(value).map(from_micros)
    }
}
