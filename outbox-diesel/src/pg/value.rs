//! What PostgreSQL takes and sends.

use std::io::Write;
use std::time::SystemTime;

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql};
use diesel::pg::data_types::PgTimestamp;
use diesel::pg::{Pg, PgValue};
use diesel::query_builder::AstPass;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{
    Array, BigInt, Binary, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid,
};
use outbox_core::clock::from_micros;
use outbox_core::sql;

use crate::read::Columns;
use crate::statement::Bind;

/// A value with its type.
#[derive(Debug)]
pub(crate) enum Value<'q> {
    Bool(bool),
    Integer(Option<i32>),
    BigInt(Option<i64>),
    Text(Option<&'q str>),
    Bytes(&'q [u8]),
    MaybeBytes(Option<&'q [u8]>),
    Uuid(Id),
    SmallInts(&'q [i16]),
    BigInts(Option<&'q [i64]>),
    Texts(Option<Vec<Option<&'q str>>>),
    Uuids(Option<Vec<Id>>),
    MaybeIntegers(Option<Vec<Option<i32>>>),
    MaybeBigInts(Option<Vec<Option<i64>>>),
    ManyBytes(Vec<&'q [u8]>),
}

/// Sixteen bytes as a UUID.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id(pub(crate) [u8; 16]);

impl ToSql<Uuid, Pg> for Id {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

impl Bind<Pg> for Value<'_> {
    fn bind<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        /// `bind!(value => Type)`: the value, whose type is this.
        macro_rules! bind {
            ($value:expr => $type:ty) => {
                out.push_bind_param_value_only::<$type, _>($value)
            };
        }
        match self {
            Self::Bool(value) => bind!(value => Bool),
            Self::Integer(value) => bind!(value => Nullable<Integer>),
            Self::BigInt(value) => bind!(value => Nullable<BigInt>),
            Self::Text(value) => bind!(value => Nullable<Text>),
            Self::Bytes(value) => bind!(*value => Binary),
            Self::MaybeBytes(value) => bind!(value => Nullable<Binary>),
            Self::Uuid(value) => bind!(value => Uuid),
            Self::SmallInts(all) => bind!(*all => Array<SmallInt>),
            Self::BigInts(all) => bind!(all => Nullable<Array<BigInt>>),
            Self::Texts(all) => bind!(all => Nullable<Array<Nullable<Text>>>),
            Self::Uuids(all) => bind!(all => Nullable<Array<Uuid>>),
            Self::MaybeIntegers(all) => bind!(all => Nullable<Array<Nullable<Integer>>>),
            Self::MaybeBigInts(all) => bind!(all => Nullable<Array<Nullable<BigInt>>>),
            Self::ManyBytes(all) => bind!(all => Array<Binary>),
        }
    }
}

/// What calls bind that are written in the core.
impl<'q> From<sql::Value<'q>> for Value<'q> {
    fn from(value: sql::Value<'q>) -> Self {
        match value {
            sql::Value::NoInt => Self::BigInt(None),
            sql::Value::NoText => Self::Text(None),
            sql::Value::NoBytes => Self::MaybeBytes(None),
            sql::Value::Int(number) => Self::BigInt(Some(number)),
            sql::Value::Text(text) => Self::Text(Some(text)),
            sql::Value::Bytes(bytes) => Self::MaybeBytes(Some(bytes)),
            sql::Value::Id(id) => Self::Uuid(Id(id)),
        }
    }
}

impl Columns for Pg {
    fn integer(value: PgValue<'_>) -> deserialize::Result<i32> {
        FromSql::<Integer, Self>::from_sql(value)
    }

    fn bigint(value: PgValue<'_>) -> deserialize::Result<i64> {
        FromSql::<BigInt, Self>::from_sql(value)
    }

    fn text(value: PgValue<'_>) -> deserialize::Result<String> {
        FromSql::<Text, Self>::from_sql(value)
    }

    fn bytes(value: PgValue<'_>) -> deserialize::Result<Vec<u8>> {
        FromSql::<Binary, Self>::from_sql(value)
    }

    fn uuid(value: PgValue<'_>) -> deserialize::Result<[u8; 16]> {
        Ok(value.as_bytes().try_into()?)
    }

    fn instant(value: PgValue<'_>) -> deserialize::Result<SystemTime> {
        /// From the Unix epoch to PostgreSQL's, 2000-01-01, in µs.
        const EPOCH: i64 = 946_684_800_000_000;
        let PgTimestamp(micros) = FromSql::<Timestamptz, Self>::from_sql(value)?;
        Ok(from_micros(micros.saturating_add(EPOCH)))
    }
}

/// An array of `bigint`, none of them null.
pub(crate) fn bigints(value: PgValue<'_>) -> deserialize::Result<Vec<i64>> {
    FromSql::<Array<BigInt>, Pg>::from_sql(value)
}
