//! Loops over the best statements known, by hand, on the store's own table: a heap-only claim by
//! `ctid` behind a low-water mark, and a delete that proves the token.

use std::collections::BTreeMap;
use std::sync::Arc;

use outbox_core::LeaseToken;
use outbox_sqlx::sqlx::postgres::PgRow;
use outbox_sqlx::sqlx::types::Uuid;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool, Row, ValueRef};

use crate::check::Entry;
use crate::worker::{Drained, Plan, Progress, WAIT, work};

/// What a loop does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Seven columns, no limit of bytes, no held destinations.
    Bare,
    /// As the store: all columns, a limit of bytes, held destinations left out.
    Same,
    /// As bare, without the mark: each claim looks from the first row on.
    Unmarked,
    /// Claims by id, and marks events as published in the table `marked`.
    Marking,
}

pub(crate) async fn by_hand(pool: &PgPool, kind: Kind, plan: Plan) -> Drained {
    let claim: Arc<str> = match kind {
        Kind::Bare | Kind::Unmarked => bare(plan.batch),
        Kind::Same => same(plan.batch),
        Kind::Marking => marking(plan.batch),
    }
    .into();
    work(plan, |progress| {
        one(pool.clone(), kind, Arc::clone(&claim), progress)
    })
    .await
}

fn bare(batch: u32) -> String {
    format!(
        "UPDATE outbox_events SET attempts = attempts + 1, lease_token = $1,
             lease_until = now() + interval '30 seconds'
         WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM outbox_events
             WHERE shape = 0 AND seq >= $2 AND (lease_until IS NULL OR lease_until < now())
             ORDER BY seq LIMIT {batch} FOR UPDATE SKIP LOCKED))
         RETURNING seq, id, event_type, destination, payload, headers, attempts"
    )
}

fn same(batch: u32) -> String {
    format!(
        "UPDATE outbox_events SET attempts = attempts + 1, lease_token = $1,
             lease_until = now() + interval '30 seconds'
         WHERE ctid = ANY (ARRAY(
             SELECT tid FROM (
                 SELECT tid, row_number() OVER w AS nth, sum(size) OVER w AS total
                 FROM (
                     SELECT ctid AS tid, seq, octet_length(payload) AS size
                     FROM outbox_events
                     WHERE shape = 0 AND seq >= $2
                       AND (lease_until IS NULL OR lease_until < now())
                       AND destination <> ALL (ARRAY(
                           SELECT destination FROM outbox_destinations WHERE hold_until > now()))
                     ORDER BY seq LIMIT {batch} FOR UPDATE SKIP LOCKED) s
                 WINDOW w AS (ORDER BY seq ROWS UNBOUNDED PRECEDING)) b
             WHERE total <= 8388608 OR nth = 1))
         RETURNING seq, id, event_type, destination, payload, headers, attempts, key, content_type,
             aggregate_type, aggregate_id, dedup_key, created_at, expires_at, max_attempts, replays,
             last_error, lease_until"
    )
}

fn marking(batch: u32) -> String {
    format!(
        "UPDATE marked SET attempts = attempts + 1, lease_token = $1,
             lease_until = now() + interval '30 seconds'
         WHERE id IN (
             SELECT id FROM marked
             WHERE published_at IS NULL AND seq >= $2
               AND (lease_until IS NULL OR lease_until < now())
             ORDER BY seq LIMIT {batch} FOR UPDATE SKIP LOCKED)
         RETURNING seq, id, event_type, destination, payload, headers, attempts"
    )
}

const SETTLE: &str =
    "DELETE FROM outbox_events WHERE seq = ANY ($1) AND lease_token = $2 RETURNING seq";
const MARK: &str = "UPDATE marked SET published_at = now()
    WHERE seq = ANY ($1) AND lease_token = $2 RETURNING seq";

async fn one(pool: PgPool, kind: Kind, claim: Arc<str>, progress: Arc<Progress>) -> Vec<Entry> {
    let settle = if kind == Kind::Marking { MARK } else { SETTLE };
    let mut mark = i64::MIN;
    let mut log = Vec::new();
    while !progress.is_done() {
        let token = Uuid::from_bytes(*LeaseToken::new().as_bytes());
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&claim)))
            .bind(token)
            .bind(mark)
            .fetch_all(&pool)
            .await
            .expect("claimed");
        if rows.is_empty() {
            mark = i64::MIN;
            tokio::time::sleep(WAIT).await;
            continue;
        }
        let claimed = progress.ticks.next();
        let mut events: Vec<Event> = rows.iter().map(|row| Event::read(row, kind)).collect();
        events.sort_unstable_by_key(|event| event.seq);
        let seqs: Vec<i64> = events.iter().map(|event| event.seq).collect();
        if kind != Kind::Unmarked {
            mark = seqs[seqs.len() - 1];
        }
        let settled = progress.ticks.next();
        let begun = log.len();
        log.extend(seqs.iter().map(|seq| Entry {
            seq: *seq,
            key: 0,
            claimed,
            settled,
        }));
        let deleted = sqlx::query(settle).bind(seqs).bind(token).fetch_all(&pool);
        let deleted = deleted.await.expect("settled").len();
        assert_eq!(deleted, events.len(), "leases were lost");
        progress.settled(&log[begun..]);
    }
    log
}

struct Event {
    seq: i64,
    _id: Uuid,
    _event_type: String,
    _destination: String,
    _payload: Vec<u8>,
    _headers: BTreeMap<String, String>,
    _attempts: i32,
    _rest: Option<Rest>,
}

/// What only the loop with the same guarantees reads.
struct Rest {
    _key: Option<String>,
    _content_type: String,
    _aggregate_type: Option<String>,
    _aggregate_id: Option<String>,
    _dedup_key: Option<String>,
    _created_at: Option<i64>,
    _expires_at: Option<i64>,
    _max_attempts: Option<i32>,
    _replays: i32,
    _last_error: Option<String>,
    _lease_until: Option<i64>,
}

impl Event {
    fn read(row: &PgRow, kind: Kind) -> Self {
        let headers: Option<&str> = row.get(5);
        let headers = headers.map(|text| serde_json::from_str(text).expect("headers"));
        Self {
            seq: row.get(0),
            _id: row.get(1),
            _event_type: row.get(2),
            _destination: row.get(3),
            _payload: row.get(4),
            _headers: headers.unwrap_or_default(),
            _attempts: row.get(6),
            _rest: (kind == Kind::Same).then(|| Rest::read(row)),
        }
    }
}

impl Rest {
    fn read(row: &PgRow) -> Self {
        Self {
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
}

/// A `timestamptz`, in µs since 2000.
fn stamp(row: &PgRow, column: usize) -> Option<i64> {
    let value = row.try_get_raw(column).expect("a column");
    (!value.is_null()).then(|| {
        let bytes = value.as_bytes().expect("binary");
        i64::from_be_bytes(bytes.try_into().expect("eight bytes"))
    })
}
