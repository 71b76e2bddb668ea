//! Loops over the best statements known, by hand, on the store's own table: a heap-only claim by
//! `ctid` behind a low-water mark, and a delete that proves the token.

mod through_diesel;
mod through_sqlx;

use std::collections::BTreeMap;
use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use outbox_core::LeaseToken;
use outbox_sqlx::sqlx::PgPool;

use self::through_diesel::Diesel;
use self::through_sqlx::Sqlx;
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

/// What runs the two statements.
trait Driver: Send {
    /// The numbers of the claimed events, all of whose columns were read.
    fn claim(&self, token: [u8; 16], mark: i64) -> impl Future<Output = Vec<i64>> + Send;

    /// How many events were settled.
    fn settle(&self, seqs: Vec<i64>, token: [u8; 16]) -> impl Future<Output = usize> + Send;
}

pub(crate) async fn by_hand(pool: &PgPool, kind: Kind, plan: Plan) -> Drained {
    let driver = || Sqlx::new(pool.clone(), kind, claim(kind, plan.batch));
    work(plan, |progress| one(driver(), kind, progress)).await
}

/// The loop with the store's guarantees, through diesel.
pub(crate) async fn by_hand_through_diesel(pool: &Pool<AsyncPgConnection>, plan: Plan) -> Drained {
    let driver = || Diesel::new(pool.clone(), claim(Kind::Same, plan.batch));
    work(plan, |progress| one(driver(), Kind::Same, progress)).await
}

fn claim(kind: Kind, batch: u32) -> String {
    match kind {
        Kind::Bare | Kind::Unmarked => bare(batch),
        Kind::Same => same(batch),
        Kind::Marking => marking(batch),
    }
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

const fn settle(kind: Kind) -> &'static str {
    match kind {
        Kind::Marking => MARK,
        _ => SETTLE,
    }
}

async fn one(driver: impl Driver, kind: Kind, progress: Arc<Progress>) -> Vec<Entry> {
    let mut mark = i64::MIN;
    let mut log = Vec::new();
    while !progress.is_done() {
        let token = *LeaseToken::new().as_bytes();
        let mut seqs = driver.claim(token, mark).await;
        if seqs.is_empty() {
            mark = i64::MIN;
            tokio::time::sleep(WAIT).await;
            continue;
        }
        let claimed = progress.ticks.next();
        seqs.sort_unstable();
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
        let expected = seqs.len();
        let deleted = driver.settle(seqs, token).await;
        assert_eq!(deleted, expected, "leases were lost");
        progress.settled(&log[begun..]);
    }
    log
}

/// What every loop reads.
struct Event {
    seq: i64,
    _id: [u8; 16],
    _event_type: String,
    _destination: String,
    _payload: Vec<u8>,
    _headers: BTreeMap<String, String>,
    _attempts: i32,
    _rest: Option<Rest>,
}

/// What only the loop with the same guarantees reads. Instants are µs since 2000.
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

fn headers(text: Option<&str>) -> BTreeMap<String, String> {
    let headers = text.map(|text| serde_json::from_str(text).expect("headers"));
    headers.unwrap_or_default()
}

fn seqs(mut events: Vec<Event>) -> Vec<i64> {
    events.sort_unstable_by_key(|event| event.seq);
    events.iter().map(|event| event.seq).collect()
}
