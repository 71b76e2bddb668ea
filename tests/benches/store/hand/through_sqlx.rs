//! The loop by hand through sqlx.

use outbox_sqlx::sqlx::postgres::PgRow;
use outbox_sqlx::sqlx::types::Uuid;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool, Row, ValueRef};
use std::sync::Arc;

use super::{Driver, Event, Kind, Rest, headers, seqs, settle};

pub(super) struct Sqlx {
    pool: PgPool,
    kind: Kind,
    claim: Arc<str>,
}

impl Sqlx {
    pub(super) fn new(pool: PgPool, kind: Kind, claim: String) -> Self {
        let claim = claim.into();
        Self { pool, kind, claim }
    }
}

impl Driver for Sqlx {
    async fn claim(&self, token: [u8; 16], mark: i64) -> Vec<i64> {
        let claim = sqlx::query(AssertSqlSafe(Arc::clone(&self.claim)))
            .bind(Uuid::from_bytes(token))
            .bind(mark);
        let rows = claim.fetch_all(&self.pool).await.expect("claimed");
        seqs(rows.iter().map(|row| event(row, self.kind)).collect())
    }

    async fn settle(&self, seqs: Vec<i64>, token: [u8; 16]) -> usize {
        let settle = sqlx::query(settle(self.kind))
            .bind(seqs)
            .bind(Uuid::from_bytes(token));
        settle.fetch_all(&self.pool).await.expect("settled").len()
    }
}

fn event(row: &PgRow, kind: Kind) -> Event {
    let id: Uuid = row.get(1);
    Event {
        seq: row.get(0),
        _id: id.into_bytes(),
        _event_type: row.get(2),
        _destination: row.get(3),
        _payload: row.get(4),
        _headers: headers(row.get(5)),
        _attempts: row.get(6),
        _rest: (kind == Kind::Same).then(|| rest(row)),
    }
}

fn rest(row: &PgRow) -> Rest {
    Rest {
        _key: row.get(7),
        _content_type: row.get(8),
        _aggregate_type: row.get(9),
        _aggregate_id: row.get(10),
        _dedup_key: row.get(11),
        _created_at: stamp(row, 12),
        _expires_at: stamp(row, 13),
        _max_attempts: row.get(14),
        _replays: row.get(15),
        _last_error: row.get(16),
        _lease_until: stamp(row, 17),
    }
}

/// A `timestamptz`, in µs since 2000.
fn stamp(row: &PgRow, column: usize) -> Option<i64> {
    let value = row.try_get_raw(column).expect("a column");
    (!value.is_null()).then(|| {
        let bytes = value.as_bytes().expect("binary");
        i64::from_be_bytes(bytes.try_into().expect("eight bytes"))
    })
}
