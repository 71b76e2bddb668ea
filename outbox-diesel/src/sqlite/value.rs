//! What SQLite takes and sends.

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql};
use diesel::query_builder::AstPass;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::sqlite::{Sqlite, SqliteValue};

use crate::read::Columns;
use crate::statement::Bind;

/// A value with its type.
#[derive(Debug)]
pub(crate) enum Value<'q> {
    BigInt(i64),
    MaybeBigInt(Option<i64>),
    Text(&'q str),
    MaybeText(Option<&'q str>),
    Bytes(&'q [u8]),
}

impl Bind<Sqlite> for Value<'_> {
    fn bind<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        match self {
            Self::BigInt(value) => out.push_bind_param_value_only::<BigInt, _>(value),
            Self::MaybeBigInt(value) => {
                out.push_bind_param_value_only::<Nullable<BigInt>, _>(value)
            }
            Self::Text(value) => out.push_bind_param_value_only::<Text, _>(*value),
            Self::MaybeText(value) => out.push_bind_param_value_only::<Nullable<Text>, _>(value),
            Self::Bytes(value) => out.push_bind_param_value_only::<Binary, _>(*value),
        }
    }
}

impl Columns for Sqlite {
    fn bigint(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<i64> {
        FromSql::<BigInt, Self>::from_sql(value)
    }

    fn text(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<String> {
        FromSql::<Text, Self>::from_sql(value)
    }

    fn bytes(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Vec<u8>> {
        FromSql::<Binary, Self>::from_sql(value)
    }
}
