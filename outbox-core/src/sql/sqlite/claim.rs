//! Claims: a look at what there is, parking what is held, and the one statement that takes rows.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::{COLUMNS, HELD, Statements, sql};
use crate::clock::{Clock, from_micros, to_micros};
use crate::sql::session::only;
use crate::sql::{Cell, Letter, Session, Sql, TableNames, Value, json, micros};
use crate::{Claim, ClaimRequest, DestinationFilter, Error, Lease, Undecodable};

/// The most rows and keys of closed destinations that one claim parks.
const PARK: u32 = 1_000;

/// The statements of a claim. They share their first parameters:
///
/// `?1` now · `?2` rows · `?3` event types (JSON array, or null for all) · `?4` the only
/// destinations (JSON array, or null) · `?5` destinations to leave out (JSON array).
#[derive(Debug)]
pub(super) struct Claims {
    /// `?1`, `?2` → the keys that are ready, at most `?2`, and as many parked ones, unless a destination
    /// is held: these are no reason to take less of others; whether a destination is held; the instant when
    /// the next row, key or hold falls due, or null.
    look: Sql,
    /// `?1`, `?2` destinations to leave out (JSON array): parks the unkeyed rows that a claim would
    /// meet.
    park_rows: Sql,
    /// `?1`, `?2` destinations to leave out (JSON array): parks the keys that a claim would meet.
    park_keys: Sql,
    /// The shared parameters, then `?6` the most rows of one key · `?7` payload bytes · `?8` token ·
    /// `?9` the lease's end · `?10` a number that differs from claim to claim. Returns the columns
    /// of an event and whether its death blocks its key.
    ///
    /// Each shape's rows are numbered, and the lowest numbers of all shapes are taken: so each has
    /// an equal share and lends what it leaves. Among equals `?10` decides who goes first.
    claim: Sql,
}

impl Claims {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            look: sql(names, &look()),
            park_rows: sql(names, &park_rows()),
            park_keys: sql(names, &park_keys()),
            claim: sql(names, &claim_text()),
        }
    }
}

fn look() -> String {
    format!(
        "SELECT \
           (SELECT count(*) FROM (SELECT 1 FROM {{~lanes}} \
              WHERE state = 0 AND ready_at <= ?1 LIMIT ?2)) \
           + CASE WHEN EXISTS ({HELD}) THEN 0 ELSE \
              (SELECT count(*) FROM (SELECT 1 FROM {{~lanes}} INDEXED BY {{~lanes_parked}} \
                WHERE state = 1 AND ready_at <= ?1 LIMIT ?2)) END, \
           EXISTS ({HELD}), \
           (SELECT min(at) FROM ( \
              SELECT min(available_at) AS at FROM {{~events}} WHERE shape = 1 AND available_at > ?1 \
              UNION ALL SELECT min(ready_at) FROM {{~lanes}} WHERE state = 0 AND ready_at > ?1 \
              UNION ALL SELECT min(held_until) FROM {{~destinations}} \
                WHERE disabled = 0 AND held_until > ?1 AND EXISTS (SELECT 1 FROM {{~events}})))"
    )
}

/// Closed to this claim: held, disabled, or left out by it.
fn closed() -> String {
    format!("{HELD} UNION ALL SELECT value FROM json_each(?2)")
}

fn park_rows() -> String {
    let closed = closed();
    format!(
        "UPDATE {{~events}} SET shape = 3 WHERE seq IN ( \
           SELECT seq FROM ( \
             SELECT seq, destination FROM (SELECT seq, destination FROM {{~events}} \
               WHERE shape = 0 ORDER BY seq LIMIT {PARK}) \
             UNION ALL \
             SELECT seq, destination FROM (SELECT seq, destination FROM {{~events}} \
               WHERE shape = 1 AND available_at <= ?1 ORDER BY available_at, seq LIMIT {PARK})) \
           WHERE destination IN ({closed}))"
    )
}

fn park_keys() -> String {
    let closed = closed();
    format!(
        "UPDATE {{~lanes}} SET state = 1 WHERE (destination, \"key\") IN ( \
           SELECT destination, \"key\" FROM (SELECT destination, \"key\" FROM {{~lanes}} \
             WHERE state = 0 AND ready_at <= ?1 ORDER BY ready_at LIMIT {PARK}) \
           WHERE destination IN ({closed}))"
    )
}

fn claim_text() -> String {
    let free = "(e.lease_until IS NULL OR e.lease_until <= ?1)";
    let type_asked = "(?3 IS NULL OR e.event_type IN (SELECT value FROM json_each(?3)))";
    let open = |alias: &str| {
        format!(
            "(?4 IS NULL OR {alias}.destination IN (SELECT value FROM json_each(?4))) \
             AND {alias}.destination NOT IN (SELECT value FROM json_each(?5)) \
             AND {alias}.destination NOT IN ({HELD})"
        )
    };
    let (row_open, lane_open) = (open("e"), open("l"));
    let parked_open = open("p");
    // The destinations with parked rows (or keys), each found by one step in the index.
    let distinct = |table: &str, parked: &str| {
        format!(
            "(destination) AS ( \
               SELECT min(destination) FROM {table} WHERE {parked} \
               UNION ALL \
               SELECT (SELECT min(destination) FROM {table} WHERE {parked} AND destination > p.destination) \
               FROM {{}} p WHERE p.destination IS NOT NULL)"
        )
    };
    let parked_rows = distinct("{~events}", "shape = 3").replace("{}", "parked_row");
    let parked_keys = distinct("{~lanes}", "state = 1").replace("{}", "parked_key");
    format!(
        "WITH RECURSIVE parked_row{parked_rows}, parked_key{parked_keys}, \
         fresh AS ( \
           SELECT e.seq, length(e.payload) AS size FROM {{~events}} e \
           WHERE e.shape = 0 AND {free} AND {type_asked} AND {row_open} \
           ORDER BY e.seq LIMIT ?2), \
         due AS ( \
           SELECT e.seq, length(e.payload) AS size, e.available_at FROM {{~events}} e \
           WHERE e.shape = 1 AND e.available_at <= ?1 AND {free} AND {type_asked} AND {row_open} \
           ORDER BY e.available_at, e.seq LIMIT ?2), \
         parked AS ( \
           SELECT e.seq, length(e.payload) AS size FROM parked_row p JOIN {{~events}} e ON e.seq IN ( \
             SELECT seq FROM {{~events}} e WHERE e.shape = 3 AND e.destination = p.destination \
               AND {free} AND {type_asked} ORDER BY seq LIMIT ?2) \
           WHERE p.destination IS NOT NULL AND {parked_open} LIMIT ?2), \
         lane AS ( \
           SELECT * FROM (SELECT destination, \"key\" FROM {{~lanes}} l \
             WHERE l.state = 0 AND l.ready_at <= ?1 AND {lane_open} ORDER BY l.ready_at LIMIT ?2) \
           UNION ALL \
           SELECT * FROM (SELECT l.destination, l.\"key\" FROM parked_key p JOIN {{~lanes}} l \
               ON l.destination = p.destination \
             WHERE l.state = 1 AND l.ready_at <= ?1 AND {parked_open} LIMIT ?2)), \
         run AS ( \
           SELECT e.seq, length(e.payload) AS size, \
             row_number() OVER key_order AS place, \
             max(coalesce(e.available_at, 0) > ?1 OR NOT {type_asked}) OVER key_order AS broken \
           FROM lane l JOIN {{~events}} e ON e.seq IN ( \
             SELECT seq FROM {{~events}} k \
             WHERE k.shape = 2 AND k.destination = l.destination AND k.\"key\" = l.\"key\" \
             ORDER BY k.seq LIMIT ?6) \
           WINDOW key_order AS (PARTITION BY e.destination, e.\"key\" ORDER BY e.seq)), \
         candidate AS ( \
           SELECT seq, size, row_number() OVER (ORDER BY seq) AS number, 0 AS shape FROM fresh \
           UNION ALL SELECT seq, size, row_number() OVER (ORDER BY available_at, seq), 1 FROM due \
           UNION ALL SELECT seq, size, row_number() OVER (ORDER BY place, seq), 2 FROM run \
             WHERE NOT broken \
           UNION ALL SELECT seq, size, row_number() OVER (ORDER BY seq), 3 FROM parked), \
         ranked AS ( \
           SELECT seq, row_number() OVER taken AS number, sum(size) OVER taken AS bytes FROM candidate \
           WINDOW taken AS (ORDER BY number, (shape + ?10) % 4 ROWS UNBOUNDED PRECEDING)) \
         UPDATE {{~events}} SET attempts = attempts + 1, lease_token = ?8, lease_until = ?9 \
         WHERE seq IN ( \
           SELECT seq FROM ranked WHERE number <= ?2 AND (number = 1 OR bytes <= ?7)) \
         RETURNING {COLUMNS}, \
           \"key\" IS NOT NULL AND destination IN \
             (SELECT destination FROM {{~destinations}} WHERE policy = 'block')"
    )
}

/// What a store remembers from one claim to the next: which shape goes first.
#[derive(Debug, Default)]
pub struct Turn(AtomicI64);

impl Turn {
    fn next(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed).rem_euclid(4)
    }
}

/// Makes a claim.
///
/// # Errors
///
/// Those of the session; nothing is claimed then.
pub async fn claim<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    turn: &Turn,
    request: &ClaimRequest,
) -> Result<Claim, Error> {
    let now = clock.now();
    let (sql, at) = (&sql.claim, Value::Int(to_micros(now)));
    let limit = i64::from(request.rows.get());
    let (only_to, except) = match &request.destinations {
        DestinationFilter::Only(names) => (Some(json(names)), json::<String>(&[])),
        DestinationFilter::Except(names) => (None, json(names)),
        DestinationFilter::All => (None, json::<String>(&[])),
    };
    let except = Value::Text(&except);
    let look = session
        .fetch(&sql.look, &[at, Value::Int(limit)], &[Cell::Int; 3])
        .await
        .and_then(only)?;
    if look.is(1) || matches!(request.destinations, DestinationFilter::Except(_)) {
        for park in [&sql.park_rows, &sql.park_keys] {
            session.execute(park, &[at, except]).await?;
        }
    }
    let types = request.event_types.as_deref().map(json);
    let lease_end = to_micros(now).saturating_add(micros(request.lease));
    let values = [
        at,
        Value::Int(limit),
        Value::text(types.as_deref()),
        Value::text(only_to.as_deref()),
        except,
        Value::Int(limit / look.int(0).max(1) + 1),
        Value::Int(i64::try_from(request.bytes).unwrap_or(i64::MAX)),
        Value::Bytes(request.token.as_bytes()),
        Value::Int(lease_end),
        Value::Int(turn.next()),
    ];
    let mut claim = Claim::default();
    for Letter { seq, event, rest } in session.events(&sql.claim, &values, &[Cell::Int]).await? {
        match event.and_then(|event| event.claimed(request.token, now, rest.is(0))) {
            Ok(claimed) => claim.events.push(claimed),
            Err(problem) => {
                let lease = Lease::new(seq, request.token);
                claim.undecodable.push(Undecodable::new(lease, problem));
            }
        }
    }
    claim
        .events
        .sort_unstable_by_key(|claimed| claimed.lease.seq);
    claim.next_due = look.maybe(2).map(|due| {
        let wait = from_micros(due).duration_since(now);
        wait.unwrap_or(Duration::ZERO)
    });
    Ok(claim)
}
