//! What PostgreSQL takes and sends.

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql};
use diesel::pg::{Pg, PgValue};
use diesel::query_builder::AstPass;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Uuid};
use std::io::Write;

use crate::read::Columns;
use crate::statement::Bind;

/// A value with its type.
#[derive(Debug)]
pub(crate) enum Value<'q> {
    BigInt(i64),
    Text(&'q str),
    Uuid(Id),
    BigInts(Vec<i64>),
    MaybeBigInts(Vec<Option<i64>>),
    Texts(Vec<&'q str>),
    MaybeTexts(Vec<Option<&'q str>>),
    Bytes(Vec<&'q [u8]>),
    Uuids(Vec<Id>),
}

/// Sixteen bytes as a UUID.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id([u8; 16]);

impl ToSql<Uuid, Pg> for Id {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

impl Bind<Pg> for Value<'_> {
    fn bind<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        match self {
            Self::BigInt(value) => out.push_bind_param_value_only::<BigInt, _>(value),
            Self::Text(value) => out.push_bind_param_value_only::<Text, _>(*value),
            Self::Uuid(value) => out.push_bind_param_value_only::<Uuid, _>(value),
            Self::BigInts(all) => out.push_bind_param_value_only::<Array<BigInt>, _>(all),
            Self::MaybeBigInts(all) => {
                out.push_bind_param_value_only::<Array<Nullable<BigInt>>, _>(all)
            }
            Self::Texts(all) => out.push_bind_param_value_only::<Array<Text>, _>(all),
            Self::MaybeTexts(all) => {
                out.push_bind_param_value_only::<Array<Nullable<Text>>, _>(all)
            }
            Self::Bytes(all) => out.push_bind_param_value_only::<Array<Binary>, _>(all),
            Self::Uuids(all) => out.push_bind_param_value_only::<Array<Uuid>, _>(all),
        }
    }
}

impl Columns for Pg {
    fn bigint(value: PgValue<'_>) -> deserialize::Result<i64> {
        FromSql::<BigInt, Self>::from_sql(value)
    }

    fn text(value: PgValue<'_>) -> deserialize::Result<String> {
        FromSql::<Text, Self>::from_sql(value)
    }

    fn bytes(value: PgValue<'_>) -> deserialize::Result<Vec<u8>> {
        FromSql::<Binary, Self>::from_sql(value)
    }
}
