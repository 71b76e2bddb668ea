//! Statements by hand through diesel that each connection prepares once. `diesel::sql_query` prepares
//! its text anew for each call.

use std::io::Write;
use std::marker::PhantomData;

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{Array, BigInt, Binary, Text, Uuid};

/// Sixteen bytes as a UUID.
#[derive(Debug, Clone, Copy, AsExpression, FromSqlRow)]
#[diesel(sql_type = Uuid)]
pub(crate) struct Id(pub(crate) [u8; 16]);

impl ToSql<Uuid, Pg> for Id {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

impl FromSql<Uuid, Pg> for Id {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(value.as_bytes().try_into()?))
    }
}

/// A value.
pub(crate) enum Bound<'q> {
    Id(Id),
    Ids(Vec<Id>),
    BigInt(i64),
    BigInts(Vec<i64>),
    Texts(Vec<&'q str>),
    Bytes(Vec<&'q [u8]>),
}

/// A text with its values, which returns rows of `ST`.
pub(crate) struct Cached<'q, ST = ()> {
    text: &'q str,
    values: Vec<Bound<'q>>,
    rows: PhantomData<fn() -> ST>,
}

impl<'q, ST> Cached<'q, ST> {
    pub(crate) const fn new(text: &'q str, values: Vec<Bound<'q>>) -> Self {
        let rows = PhantomData;
        Self { text, values, rows }
    }
}

impl<ST> QueryId for Cached<'_, ST> {
    type QueryId = ();

    // The cache goes by the text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<ST> Query for Cached<'_, ST> {
    type SqlType = ST;
}

impl<ST> QueryFragment<Pg> for Cached<'_, ST> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(self.text);
        for value in &self.values {
            match value {
                Bound::Id(id) => out.push_bind_param_value_only::<Uuid, _>(id),
                Bound::Ids(all) => out.push_bind_param_value_only::<Array<Uuid>, _>(all),
                Bound::BigInt(one) => out.push_bind_param_value_only::<BigInt, _>(one),
                Bound::BigInts(all) => out.push_bind_param_value_only::<Array<BigInt>, _>(all),
                Bound::Texts(all) => out.push_bind_param_value_only::<Array<Text>, _>(all),
                Bound::Bytes(all) => out.push_bind_param_value_only::<Array<Binary>, _>(all),
            }?;
        }
        Ok(())
    }
}
