//! The inserts by hand through diesel.

use diesel::{ExpressionMethods, QueryResult};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::cached::{Bound, Cached, Id};
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

/// As an expert would: a text that is prepared once.
pub(crate) async fn many(conn: &mut AsyncPgConnection, rows: &[Columns]) {
    let values = vec![
        Bound::Ids(rows.iter().map(|row| Id(row.id)).collect()),
        Bound::Texts(vec![TYPE; rows.len()]),
        Bound::Texts(vec![DESTINATION; rows.len()]),
        Bound::Bytes(rows.iter().map(|row| row.payload.as_slice()).collect()),
        Bound::Texts(vec![JSON; rows.len()]),
    ];
    let insert: Cached<'_> = Cached::new(MANY, values);
    insert.execute(conn).await.expect("inserted");
}
