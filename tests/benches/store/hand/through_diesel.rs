//! The loop by hand through diesel.

use diesel::pg::data_types::PgTimestamp;
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, Text, Timestamptz, Uuid};
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use super::{Driver, Event, Kind, Rest, headers, seqs, settle};
use crate::cached::{Bound, Cached, Id};

pub(super) struct Diesel {
    pool: Pool<AsyncPgConnection>,
    claim: String,
}

type First = (BigInt, Uuid, Text, Text, Binary, Nullable<Text>, Integer);
type Last = (
    Nullable<Text>,
    Text,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Timestamptz>,
    Nullable<Timestamptz>,
    Nullable<Integer>,
    Integer,
    Nullable<Text>,
    Nullable<Timestamptz>,
);
type FirstValues = (i64, Id, String, String, Vec<u8>, Option<String>, i32);
type LastValues = (
    Option<String>,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<PgTimestamp>,
    Option<PgTimestamp>,
    Option<i32>,
    i32,
    Option<String>,
    Option<PgTimestamp>,
);

impl Diesel {
    pub(super) const fn new(pool: Pool<AsyncPgConnection>, claim: String) -> Self {
        Self { pool, claim }
    }

    async fn connection(&self) -> Object<AsyncPgConnection> {
        self.pool.get().await.expect("connected")
    }
}

impl Driver for Diesel {
    async fn claim(&self, token: [u8; 16], mark: i64) -> Vec<i64> {
        let values = vec![Bound::Id(Id(token)), Bound::BigInt(mark)];
        let claim: Cached<'_, (First, Last)> = Cached::new(&self.claim, values);
        let mut conn = self.connection().await;
        let rows: Vec<(FirstValues, LastValues)> = claim.load(&mut conn).await.expect("claimed");
        seqs(rows.into_iter().map(event).collect())
    }

    async fn settle(&self, seqs: Vec<i64>, token: [u8; 16]) -> usize {
        let values = vec![Bound::BigInts(seqs), Bound::Id(Id(token))];
        let settle: Cached<'_, BigInt> = Cached::new(settle(Kind::Same), values);
        let mut conn = self.connection().await;
        let settled: Vec<i64> = settle.load(&mut conn).await.expect("settled");
        settled.len()
    }
}

fn event((first, last): (FirstValues, LastValues)) -> Event {
    let (seq, id, event_type, destination, payload, text, attempts) = first;
    Event {
        seq,
        _id: id.0,
        _event_type: event_type,
        _destination: destination,
        _payload: payload,
        _headers: headers(text.as_deref()),
        _attempts: attempts,
        _rest: Some(rest(last)),
    }
}

fn rest(last: LastValues) -> Rest {
    let stamp = |stamp: Option<PgTimestamp>| stamp.map(|stamp| stamp.0);
    Rest {
        _key: last.0,
        _content_type: last.1,
        _aggregate_type: last.2,
        _aggregate_id: last.3,
        _dedup_key: last.4,
        _created_at: stamp(last.5),
        _expires_at: stamp(last.6),
        _max_attempts: last.7,
        _replays: last.8,
        _last_error: last.9,
        _lease_until: stamp(last.10),
    }
}
