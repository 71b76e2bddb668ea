//! Inserts by hand through sqlx: the row that an enqueue stores, and a business row.

use std::sync::LazyLock;

use outbox_core::{EventId, NewEvent};
use outbox_sqlx::sqlx::types::Uuid;
use outbox_sqlx::sqlx::{self, PgConnection};

use crate::setup::DESTINATION;

pub(crate) const TYPE: &str = "RepositoryPushed";
pub(crate) const JSON: &str = "application/json";
static PAYLOAD: LazyLock<Vec<u8>> = LazyLock::new(|| vec![b'x'; 400]);

/// The table of business rows.
pub(crate) const BUSINESS: &str = "CREATE TABLE IF NOT EXISTS business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text NOT NULL)";

pub(crate) fn event() -> NewEvent {
    NewEvent::bytes(TYPE, PAYLOAD.clone())
        .content_type(JSON)
        .to(DESTINATION)
}

/// One row, as its columns.
pub(crate) struct Columns {
    pub(crate) id: [u8; 16],
    pub(crate) payload: Vec<u8>,
}

impl Columns {
    pub(crate) fn new() -> Self {
        Self {
            id: *EventId::new().as_bytes(),
            payload: PAYLOAD.clone(),
        }
    }
}

pub(crate) async fn business(conn: &mut PgConnection) {
    let insert = sqlx::query("INSERT INTO business (note) VALUES ($1)").bind("pushed");
    insert.execute(conn).await.expect("inserted");
}

pub(crate) async fn one(conn: &mut PgConnection, row: &Columns) {
    sqlx::query(
        "INSERT INTO outbox_events (id, event_type, destination, payload, content_type)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(Uuid::from_bytes(row.id))
    .bind(TYPE)
    .bind(DESTINATION)
    .bind(&row.payload)
    .bind(JSON)
    .execute(conn)
    .await
    .expect("inserted");
}

pub(crate) const MANY: &str =
    "INSERT INTO outbox_events (id, event_type, destination, payload, content_type)
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[])";
/// The same into the table whose rows are marked as published.
pub(crate) const MANY_MARKED: &str =
    "INSERT INTO marked (id, event_type, destination, payload, content_type)
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[])";

pub(crate) async fn many(conn: &mut PgConnection, statement: &'static str, rows: &[Columns]) {
    let ids: Vec<Uuid> = rows.iter().map(|row| Uuid::from_bytes(row.id)).collect();
    let payloads: Vec<&[u8]> = rows.iter().map(|row| row.payload.as_slice()).collect();
    sqlx::query(statement)
        .bind(ids)
        .bind(vec![TYPE; rows.len()])
        .bind(vec![DESTINATION; rows.len()])
        .bind(payloads)
        .bind(vec![JSON; rows.len()])
        .execute(conn)
        .await
        .expect("inserted");
}

/// The business row and the event in one statement, which is a transaction of its own.
pub(crate) async fn both(conn: &mut PgConnection, row: &Columns) {
    sqlx::query(
        "WITH business AS (INSERT INTO business (note) VALUES ($6))
         INSERT INTO outbox_events (id, event_type, destination, payload, content_type)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(Uuid::from_bytes(row.id))
    .bind(TYPE)
    .bind(DESTINATION)
    .bind(&row.payload)
    .bind(JSON)
    .bind("pushed")
    .execute(conn)
    .await
    .expect("inserted");
}
