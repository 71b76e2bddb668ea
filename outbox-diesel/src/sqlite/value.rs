//! What SQLite takes and sends.

use std::borrow::Cow;
use std::time::SystemTime;

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql};
use diesel::query_builder::AstPass;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text};
use diesel::sqlite::{Sqlite, SqliteValue};
use outbox_core::clock::from_micros;

use crate::read::Columns;
use crate::statement::Bind;

/// A value with its type.
#[derive(Debug)]
pub(crate) enum Value<'q> {
    BigInt(Option<i64>),
    Text(Option<Cow<'q, str>>),
    Bytes(&'q [u8]),
    MaybeBytes(Option<&'q [u8]>),
    Id([u8; 16]),
}

impl<'q> Value<'q> {
    /// Borrowed text.
    pub(crate) fn text(text: Option<&'q str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }

    /// Text of its own (a list as JSON, say).
    pub(crate) fn owned(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }

    /// A number.
    pub(crate) fn number(number: impl Into<i64>) -> Self {
        Self::BigInt(Some(number.into()))
    }
}

impl Bind<Sqlite> for Value<'_> {
    fn bind<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        match self {
            Self::BigInt(value) => out.push_bind_param_value_only::<Nullable<BigInt>, _>(value),
            Self::Text(value) => out.push_bind_param_value_only::<Nullable<Text>, _>(value),
            Self::Bytes(value) => out.push_bind_param_value_only::<Binary, _>(*value),
            Self::MaybeBytes(value) => out.push_bind_param_value_only::<Nullable<Binary>, _>(value),
            Self::Id(value) => out.push_bind_param_value_only::<Binary, _>(value.as_slice()),
        }
    }
}

impl Columns for Sqlite {
    fn boolean(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<bool> {
        FromSql::<Bool, Self>::from_sql(value)
    }

    fn integer(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<i32> {
        FromSql::<Integer, Self>::from_sql(value)
    }

    fn bigint(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<i64> {
        FromSql::<BigInt, Self>::from_sql(value)
    }

    fn text(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<String> {
        FromSql::<Text, Self>::from_sql(value)
    }

    fn bytes(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Vec<u8>> {
        FromSql::<Binary, Self>::from_sql(value)
    }

    fn uuid(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<[u8; 16]> {
        Ok(Self::bytes(value)?.as_slice().try_into()?)
    }

    fn instant(value: SqliteValue<'_, '_, '_>) -> deserialize::Result<SystemTime> {
        Self::bigint(value).map(from_micros)
    }
}
