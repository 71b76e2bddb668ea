//! The inserts by hand through diesel.

use std::io::Write;

use diesel::expression::AsExpression;
use diesel::pg::Pg;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{Array, Binary, Text, Uuid};
use diesel::{ExpressionMethods, QueryResult};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::inserts::{Columns, JSON, MANY, TYPE};
use crate::setup::DESTINATION;

diesel::table! {
    outbox_events (seq) {
        seq -> BigInt,
        id -> Uuid,
        event_type -> Text,
        destination -> Text,
        payload -> Binary,
        content_type -> Text,
    }
}

diesel::table! {
    business (id) {
        id -> BigInt,
        note -> Text,
    }
}

/// Sixteen bytes as a UUID.
#[derive(Debug, Clone, Copy, AsExpression)]
#[diesel(sql_type = Uuid)]
struct Id([u8; 16]);

impl ToSql<Uuid, Pg> for Id {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

/// Takes a shared connection, so that other statements can be on their way.
pub(crate) async fn business_row(mut conn: &AsyncPgConnection) -> QueryResult<usize> {
    diesel::insert_into(business::table)
        .values(business::note.eq("pushed"))
        .execute(&mut conn)
        .await
}

pub(crate) async fn one(conn: &mut AsyncPgConnection, row: &Columns) {
    diesel::insert_into(outbox_events::table)
        .values((
            outbox_events::id.eq(Id(row.id)),
            outbox_events::event_type.eq(TYPE),
            outbox_events::destination.eq(DESTINATION),
            outbox_events::payload.eq(&row.payload),
            outbox_events::content_type.eq(JSON),
        ))
        .execute(conn)
        .await
        .expect("inserted");
}

pub(crate) async fn many(conn: &mut AsyncPgConnection, rows: &[Columns]) {
    let ids: Vec<Id> = rows.iter().map(|row| Id(row.id)).collect();
    let payloads: Vec<&[u8]> = rows.iter().map(|row| row.payload.as_slice()).collect();
    diesel::sql_query(MANY)
        .bind::<Array<Uuid>, _>(ids)
        .bind::<Array<Text>, _>(vec![TYPE; rows.len()])
        .bind::<Array<Text>, _>(vec![DESTINATION; rows.len()])
        .bind::<Array<Binary>, _>(payloads)
        .bind::<Array<Text>, _>(vec![JSON; rows.len()])
        .execute(conn)
        .await
        .expect("inserted");
}
