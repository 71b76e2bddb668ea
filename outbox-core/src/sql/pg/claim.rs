//! Claims.
//!
//! Every statement here is complete in itself and runs in autocommit mode. Each returns the columns
//! of [`EventRow`](crate::sql::EventRow), then `lease_until` (the database's now plus the lease),
//! then one `bigint` more. A row whose `lease_until` is null is no event but a note on the claim.

use super::{event_columns, sql};
use crate::sql::{Sql, Step, TableNames};

/// Statements that claim. They call functions that hold what is below.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClaimSql {
    /// Fresh rows but for those of held and excluded destinations, which it walks past. `$1` token, `$2`
    /// lease in µs, `$3` bytes, `$4` whether the first row comes whatever its size, `$5` first `seq`,
    /// `$6` excluded destinations or null, `$7` most rows. The last column is
    /// [`Notes`](crate::sql::Notes).
    fresh: Sql,
    /// As `fresh`, without notes: the last column is zero.
    fresh_alone: Sql,
    /// Fresh rows with filters, by a window of `$10` rows: parks those of held or excluded
    /// destinations. `$1` to `$5` as `fresh`, `$6` event types or null, `$7` only these destinations
    /// or null, `$8` excluded destinations or null, `$9` most rows. The note: `seq` is the last one
    /// looked at, `max_attempts` how many were, `replays` how many of these were free, `attempts` how
    /// many were parked, the last column as that of `fresh`.
    fresh_window: Sql,
    /// Due rows, as `fresh_window` without `$5`: `$5` to `$7` are the filters, `$8` the most rows,
    /// `$9` the window.
    due_window: Sql,
    /// Parked rows whose destination is free. `$1` to `$4` as `fresh`, `$5` the destination to start
    /// after, `$6` to `$8` the filters, `$9` most rows. The note, where the walk ended before the last
    /// destination and found no row: its `destination` is `$5` of the next claim.
    parked: Sql,
    /// Runs of keys. `$1` to `$4` as `fresh`, `$5` most rows, `$6` destination and `$7` hash of the
    /// key to start after, `$8` to `$10` the filters, `$11` whether it looks before it locks. The last
    /// column is 1 where a dead event blocks its key. The note: `destination` and `seq` are `$6` and `$7`
    /// of the next claim, which should follow at once where `attempts` is odd; 2 is added where other
    /// claims kept this one off keys. `$12` and `$13` are the first and the last stripe.
    keyed: Sql,
    /// Keyed rows at the front of stripes. `$1` to `$5` as `keyed`, `$6` to `$8` the filters, `$9` the stripes,
    /// `$10` whether it asks all of them at once, `$11` as of `keyed`, as is the last column. The note: `seq`
    /// is for [`FrontNote`](crate::sql::front::FrontNote), `attempts` as that of `keyed`.
    front: Sql,
    /// No claim: [`Notes`](crate::sql::Notes), then the last `seq` that was given out.
    pub look: Sql,
}

impl ClaimSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let fresh = |notes: &str| {
            let text = CALL_FRESH.replace(":columns", event_columns!());
            sql(names, &text.replace(":notes", notes))
        };
        Self {
            fresh: fresh("(SELECT notes FROM {notes_v1}())"),
            fresh_alone: fresh("0::bigint"),
            fresh_window: sql(
                names,
                "SELECT * FROM {claim_fresh_window_v1}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            ),
            due_window: sql(
                names,
                "SELECT * FROM {claim_due_window_v1}($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            ),
            parked: sql(
                names,
                "SELECT * FROM {claim_parked_v1}($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            ),
            keyed: sql(names, KEYED),
            front: sql(names, FRONT),
            look: sql(names, LOOK),
        }
    }

    /// The statement of this step.
    #[must_use]
    pub const fn of(&self, step: &Step) -> &Sql {
        match step {
            Step::Fresh { notes: true, .. } => &self.fresh,
            Step::Fresh { .. } => &self.fresh_alone,
            Step::FreshWindow { .. } => &self.fresh_window,
            Step::DueWindow { .. } => &self.due_window,
            Step::Parked { .. } => &self.parked,
            Step::Front { .. } => &self.front,
            Step::Keyed { .. } => &self.keyed,
        }
    }
}

/// Ordered sub-selects rather than `EXISTS`: for that, the planner may scan the table, which ends soon
/// only where such rows are near its start.
pub(super) const NOTES: &str = "(
    SELECT ((SELECT 1 FROM {events} WHERE shape = 1 AND available_at <= now()
             ORDER BY available_at, seq LIMIT 1) IS NOT NULL)::integer
        + ((SELECT 1 FROM {events} WHERE key IS NOT NULL
             ORDER BY khash >> 60, destination, khash, seq LIMIT 1) IS NOT NULL)::integer * 2
        + ((SELECT 1 FROM {events} WHERE shape = 3
             ORDER BY destination, seq LIMIT 1) IS NOT NULL)::integer * 4
        + EXISTS (SELECT FROM {destinations} WHERE hold_until > now())::integer * 8
        + COALESCE(1 + (extract(epoch FROM least(
            (SELECT min(available_at) FROM {events} WHERE shape = 1 AND available_at > now()),
            (SELECT min(available_at) FROM {events} WHERE shape = 4 AND available_at > now()),
            (SELECT min(hold_until) FROM {destinations}
             WHERE hold_until > now() AND hold_until < 'infinity')
          ) - now()) * 1000000)::bigint, 0) * 16)";

/// What a claim writes. The end of the lease is computed once, not for each row.
macro_rules! lease {
    () => {
        "attempts = e.attempts + 1, lease_token = $1,
    lease_until = (SELECT now() + $2::bigint * interval '1 microsecond')"
    };
}

/// Fresh rows. What no index serves is asked of expressions, here and below: of a bare column the
/// planner has statistics. Where they were taken while all rows were under a lease, or where all are
/// for one destination, it would expect no row to remain, and scan and sort the table.
///
/// Whether all have room is asked before which have: a window over the rows costs as much as a tenth of
/// the claim.
pub(super) const FRESH: &str = concat!(
    "DECLARE
    v_tids tid[];
    v_total bigint;
BEGIN
    SELECT array_agg(tid), sum(size) INTO v_tids, v_total
    FROM (
        SELECT ctid AS tid, octet_length(payload) AS size
        FROM {events}
        WHERE shape = 0 AND seq >= $5
          AND COALESCE(lease_until, '-infinity') <= now()
          AND COALESCE(destination, '') <> ALL (ARRAY(
              SELECT destination FROM {destinations} WHERE hold_until > now()
              UNION ALL SELECT unnest($6::text[])))
        ORDER BY seq
        LIMIT $7
        FOR UPDATE SKIP LOCKED
    ) s;
    IF v_total > $3 THEN
        SELECT array_agg(tid) INTO v_tids
        FROM (
            SELECT tid, nth, sum((SELECT octet_length(payload) FROM {events} WHERE ctid = u.tid))
                OVER (ORDER BY nth ROWS UNBOUNDED PRECEDING) AS total
            FROM unnest(v_tids) WITH ORDINALITY AS u(tid, nth)
        ) b
        WHERE total <= $3 OR nth = 1 AND $4;
    END IF;
    RETURN QUERY
    UPDATE {events} AS e
    SET ",
    lease!(),
    "
    WHERE e.ctid = ANY (v_tids)
    RETURNING ",
    event_columns!(),
    ", lease_until;
END;"
);

const CALL_FRESH: &str = "SELECT :columns, lease_until, :notes
FROM {claim_fresh_v1}($1, $2, $3, $4, $5, $6, $7)";

pub(super) fn fresh_window() -> String {
    window("shape = 0 AND seq >= $5", "seq", 6)
}

pub(super) fn due_window() -> String {
    let due = "shape = 1 AND available_at <= now()";
    window(due, "available_at, seq", 5)
}

/// A claim by a window of the rows that `which` selects, in `order`. Rows of closed destinations are
/// parked; of the others, the first are claimed. `filter` is the first of the three filter
/// parameters, and the most rows come after them.
///
/// The whole window is locked where it is read, which spares a second look at each row. So a window
/// should not be much wider than what is taken from it.
///
/// The filters stand in a `CASE`, which the planner takes for half of the rows whatever the values:
/// otherwise it would find a plan for given values so much better than one for any that it would
/// plan each claim anew, for half of the time that the claim takes.
fn window(which: &str, order: &str, filter: u8) -> String {
    let (types, only, except, rows) = (filter, filter + 1, filter + 2, filter + 3);
    format!(
        "WITH seen AS MATERIALIZED (
    SELECT ctid AS tid, available_at, seq, octet_length(payload) AS size,
           destination = ANY (COALESCE(${except}::text[], '{{}}') || ARRAY(
               SELECT destination FROM {{destinations}} WHERE hold_until > now())) AS closed
    FROM {{events}}
    WHERE {which} AND COALESCE(lease_until, '-infinity') <= now()
      AND CASE WHEN ${types}::text[] IS NULL AND ${only}::text[] IS NULL THEN true
          ELSE (${types} IS NULL OR array_position(${types}, event_type) IS NOT NULL)
              AND (${only} IS NULL OR array_position(${only}, destination) IS NOT NULL) END
    ORDER BY {order}
    LIMIT :rows
    FOR UPDATE SKIP LOCKED
), parked AS (
    UPDATE {{events}} AS e SET shape = 3
    WHERE e.ctid = ANY (ARRAY(SELECT tid FROM seen WHERE closed))
    RETURNING 1
), claimed AS (
    UPDATE {{events}} AS e
    SET {lease}
    WHERE e.ctid = ANY (ARRAY(
        SELECT tid FROM (
            SELECT tid, row_number() OVER w AS nth, sum(size) OVER w AS total
            FROM seen WHERE NOT closed
            WINDOW w AS (ORDER BY {order} ROWS UNBOUNDED PRECEDING)
        ) b
        WHERE nth <= ${rows}::bigint AND (total <= $3 OR nth = 1 AND $4)))
    RETURNING {columns}, lease_until
)
SELECT {columns}, lease_until, 0::bigint FROM claimed
UNION ALL
SELECT COALESCE(max(seq), 0), '00000000-0000-0000-0000-000000000000'::uuid, '', '', NULL, '', '',
    NULL, NULL, NULL, NULL, now(), NULL, count(*)::integer,
    (SELECT count(*)::integer FROM parked), (count(*) FILTER (WHERE NOT closed))::integer, NULL,
    NULL, :notes
FROM seen",
        columns = event_columns!(),
        lease = lease!(),
    )
}

pub(super) const PARKED: &str = concat!(
    "WITH RECURSIVE dests AS (
    (SELECT destination, 1 AS step FROM {events} WHERE shape = 3 AND destination > $5
     ORDER BY destination LIMIT 1)
    UNION ALL
    SELECT n.destination, d.step + 1
    FROM dests d CROSS JOIN LATERAL (
        SELECT destination FROM {events} WHERE shape = 3 AND destination > d.destination
        ORDER BY destination LIMIT 1
    ) n
    WHERE d.step < 500
), picked AS MATERIALIZED (
    SELECT r.tid, r.size, d.step, r.seq
    FROM dests d CROSS JOIN LATERAL (
        SELECT ctid AS tid, seq, octet_length(payload) AS size
        FROM {events}
        WHERE shape = 3 AND destination = d.destination
          AND COALESCE(lease_until, '-infinity') <= now()
          AND ($6::text[] IS NULL OR array_position($6, event_type) IS NOT NULL)
        ORDER BY seq
        LIMIT :rows
        FOR UPDATE SKIP LOCKED
    ) r
    WHERE d.destination <> ALL (COALESCE($8::text[], '{}') || ARRAY(
              SELECT destination FROM {destinations} WHERE hold_until > now()))
      AND ($7::text[] IS NULL OR d.destination = ANY ($7))
    LIMIT :rows
), claimed AS (
UPDATE {events} AS e
SET ",
    lease!(),
    "
WHERE e.ctid = ANY (ARRAY(
    SELECT tid FROM (
        SELECT tid, row_number() OVER w AS nth, sum(size) OVER w AS total
        FROM picked WINDOW w AS (ORDER BY step, seq ROWS UNBOUNDED PRECEDING)
    ) b
    WHERE total <= $3 OR nth = 1 AND $4))
RETURNING ",
    event_columns!(),
    ", lease_until
)
SELECT ",
    event_columns!(),
    ", lease_until, 0::bigint FROM claimed
UNION ALL
SELECT 0, '00000000-0000-0000-0000-000000000000'::uuid, '',
    (SELECT destination FROM dests WHERE step = 500), NULL, '', '', NULL, NULL, NULL, NULL, now(),
    NULL, NULL, 0, 0, NULL, NULL, 0
WHERE NOT EXISTS (SELECT FROM picked) AND EXISTS (SELECT FROM dests WHERE step = 500)"
);

/// Keyed rows from a function, and whether a dead event blocks its key.
macro_rules! keyed {
    ($call:literal) => {
        concat!(
            "SELECT ",
            event_columns!(),
            ", lease_until,
    (destination = ANY (ARRAY(
        SELECT destination FROM {destinations} WHERE dead_head = 'block')))::integer::bigint
FROM ",
            $call
        )
    };
}

const KEYED: &str = keyed!(
    "{claim_keyed_v1}(
    $1, $2::bigint * interval '1 microsecond', $5, $3, $4, $6, $7, $8, $9, $10, $11, $12, $13)"
);

const FRONT: &str = keyed!(
    "{claim_front_v1}(
    $1, $2::bigint * interval '1 microsecond', $5, $3, $4, $6, $7, $8, $9, $10, $11)"
);

const LOOK: &str = "SELECT (SELECT notes FROM {notes_v1}()), (SELECT last_value FROM {events_seq})";
