//! The statements of a claim, which is one transaction. What they bind stands with each; *filter* is
//! five values: destinations to leave out, event types or null twice, the only destinations or null
//! twice (all by [`names_text`](super::names_text)).

use super::{DESTINATION_HASH, sql};
use crate::sql::{Sql, TableNames};

/// The rows that a pass looks at to park those of closed destinations.
pub(super) const WINDOW: usize = 1_000;
/// The destinations that one statement takes parked rows of.
pub(super) const PARKED: usize = 16;
/// How many lanes one statement looks at, from large to small.
pub(super) const LANES: [usize; 4] = [64, 16, 4, 1];

#[derive(Debug)]
pub(super) struct ClaimSql {
    /// One row: now, whether there are due, keyed and parked rows, whether a destination is held,
    /// when the next row is due, when the next hold ends.
    pub(super) look: Sql,
    /// The held destinations. Now.
    pub(super) held: Sql,
    /// `seq`, size. Filter, rows.
    pub(super) fresh: Sql,
    /// `seq`, size. Now, filter, rows.
    pub(super) due: Sql,
    /// `seq`, size. [`PARKED`] places, filter, rows.
    pub(super) parked: Sql,
    /// Places of parked rows, whether admitted, how many of the entries are there. Filter, after this
    /// place, entries.
    pub(super) parked_heads: Sql,
    /// Place and `seq` of rows to park. Shape, up to this place, destinations.
    pub(super) window: Sql,
    /// Locks those that are still there: `seq`. Entries.
    pub(super) lock_window: Sql,
    /// Seqs.
    pub(super) park: Sql,
    /// Lanes: place, whether ready but for its delay, how many of the entries are there, when its
    /// head is available. Now, filter, after this place, entries.
    pub(super) lanes: Sql,
    /// Lanes whose leases have all expired. After this place, now.
    pub(super) expired_lanes: Sql,
    /// Locks guards: slot. Slots.
    pub(super) guards: Sql,
    /// For each of [`LANES`]: `seq`, place, size, shape, available at, leased until, admitted. Filter,
    /// then for each lane place and rows, then the places again.
    pub(super) runs: [Sql; 4],
    /// Locks those that can be taken: `seq`. Entries, now, now.
    pub(super) lock_runs: Sql,
    /// Seqs, token, lease end twice.
    pub(super) take: Sql,
    /// The events, whether a death blocks. Seqs.
    pub(super) taken: Sql,
}

impl ClaimSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let fill = |template: &str| {
            let text = template
                .replace(":filter", FILTER)
                .replace(":entries", ENTRIES)
                .replace(":window", &WINDOW.to_string());
            sql(names, &text)
        };
        let heads = |shape: i64, template: &str| {
            let heads = HEADS.replace(":shape", &shape.to_string());
            fill(&template.replace(":heads", &heads))
        };
        Self {
            look: fill(LOOK),
            held: fill(
                "SELECT destination FROM {destinations} WHERE disabled = 1 OR hold_until > ?",
            ),
            fresh: fill(
                "SELECT e.seq, e.size FROM {events} e FORCE INDEX (queue) \
                 WHERE e.shape = 0 AND e.place = 0 AND :filter \
                 ORDER BY e.seq LIMIT ? FOR UPDATE SKIP LOCKED",
            ),
            due: fill(
                "SELECT e.seq, e.size FROM {events} e FORCE INDEX (queue) \
                 WHERE e.shape = 1 AND e.place <= ? AND :filter \
                 ORDER BY e.place, e.seq LIMIT ? FOR UPDATE SKIP LOCKED",
            ),
            parked: fill(&format!(
                "SELECT e.seq, e.size FROM {{events}} e FORCE INDEX (queue) \
                 WHERE e.shape = 3 AND e.place IN ({}) AND :filter \
                 ORDER BY e.place, e.seq LIMIT ? FOR UPDATE SKIP LOCKED",
                marks(PARKED)
            )),
            parked_heads: heads(
                3,
                "SELECT h.place, :filter, h.entries FROM :heads h :events ON e.seq = h.head \
                 ORDER BY h.place",
            ),
            window: fill(
                "SELECT place, seq FROM ( \
                   SELECT place, seq, destination FROM {events} FORCE INDEX (queue) \
                   WHERE shape = ? AND place <= ? ORDER BY place, seq LIMIT :window) w \
                 WHERE FIND_IN_SET(HEX(destination), ?) > 0",
            ),
            lock_window: fill("SELECT e.seq FROM :entries :lock(e) SKIP LOCKED"),
            park: fill(&format!(
                "UPDATE :seqs :events ON e.seq = j.n \
                 SET e.shape = 3, e.place = {}",
                DESTINATION_HASH.replace("destination", "e.destination")
            )),
            lanes: heads(2, LANES_SQL),
            expired_lanes: fill(
                "SELECT place FROM {events} FORCE INDEX (queue) \
                 WHERE shape = 4 AND place > ? GROUP BY place HAVING MAX(lease_until) <= ? \
                 ORDER BY place LIMIT 64",
            ),
            guards: fill(
                "SELECT g.slot FROM :seqs \
                 STRAIGHT_JOIN {guards} g FORCE INDEX (PRIMARY) ON g.slot = j.n \
                 :lock(g) SKIP LOCKED",
            ),
            runs: LANES.map(|lanes| fill(&runs(lanes))),
            lock_runs: fill(
                "SELECT e.seq FROM :entries WHERE e.available_at <= ? \
                   AND (e.lease_until IS NULL OR e.lease_until <= ?) \
                 :lock(e) SKIP LOCKED",
            ),
            take: fill(
                "UPDATE :seqs :events ON e.seq = j.n SET \
                   e.attempts = LEAST(e.attempts, 2147483646) + 1, \
                   e.lease_token = ?, e.lease_until = ?, \
                   e.place = IF(e.`key` IS NULL, ?, e.place), \
                   e.shape = IF(e.`key` IS NULL, 1, 4)",
            ),
            taken: fill(
                "SELECT :columns, e.`key` IS NOT NULL AND EXISTS ( \
                   SELECT 1 FROM {destinations} d \
                   WHERE d.destination = e.destination AND d.dead_head = 'block') \
                 FROM :seqs :events ON e.seq = j.n",
            ),
        }
    }
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

const FILTER: &str = "(FIND_IN_SET(HEX(e.destination), ?) = 0 \
    AND (? IS NULL OR FIND_IN_SET(HEX(e.event_type), ?) > 0) \
    AND (? IS NULL OR FIND_IN_SET(HEX(e.destination), ?) > 0))";

/// Rows by their entries of the queue: `[[shape, place, seq], …]`. A claim locks an entry before its row,
/// always: where `SKIP LOCKED` passes a row by, the entry stays locked, and a claim that had the row
/// would wait for it when it writes.
const ENTRIES: &str = "JSON_TABLE(?, '$[*]' COLUMNS ( \
      shape INT PATH '$[0]', place BIGINT PATH '$[1]', seq BIGINT PATH '$[2]')) j \
    STRAIGHT_JOIN {events} e FORCE INDEX (queue) \
      ON e.shape = j.shape AND e.place = j.place AND e.seq = j.seq";

const LOOK: &str = "SELECT :now, \
    EXISTS (SELECT 1 FROM {events} WHERE shape = 1 AND place <= :now), \
    EXISTS (SELECT 1 FROM {events} WHERE shape = 2) \
      OR EXISTS (SELECT 1 FROM {events} WHERE shape = 4), \
    EXISTS (SELECT 1 FROM {events} WHERE shape = 3), \
    EXISTS (SELECT 1 FROM {destinations} WHERE disabled = 1) \
      OR EXISTS (SELECT 1 FROM {destinations} WHERE disabled = 0 AND hold_until > :now), \
    (SELECT place FROM {events} FORCE INDEX (queue) \
     WHERE shape = 1 AND place > :now ORDER BY place LIMIT 1), \
    (SELECT MIN(hold_until) FROM {destinations} WHERE disabled = 0 AND hold_until > :now)";

/// The places of a shape, and the first row of each, among so many entries of the index: a place
/// with any number of rows costs no more.
const HEADS: &str = "(SELECT place, MIN(seq) AS head, COUNT(*) AS entries FROM ( \
      SELECT place, seq FROM {events} FORCE INDEX (queue) \
      WHERE shape = :shape AND place > ? ORDER BY place, seq LIMIT ?) w GROUP BY place)";

const LANES_SQL: &str = "SELECT h.place, \
      NOT EXISTS (SELECT 1 FROM {events} l \
                  WHERE l.shape = 4 AND l.place = h.place AND l.lease_until > ?) \
      AND NOT EXISTS (SELECT 1 FROM {blocked} b \
                      WHERE b.destination = e.destination AND b.`key` = e.`key`) \
      AND :filter, \
      h.entries, e.available_at \
    FROM :heads h :events ON e.seq = h.head ORDER BY h.place";

fn runs(lanes: usize) -> String {
    let head = "(SELECT seq FROM {events} FORCE INDEX (queue) \
                 WHERE shape = 2 AND place = ? ORDER BY seq LIMIT ?)";
    format!(
        "SELECT e.seq, e.place, e.size, e.shape, e.available_at, e.lease_until, \
           :filter AND NOT EXISTS (SELECT 1 FROM {{blocked}} b \
             WHERE b.destination = e.destination AND b.`key` = e.`key`) \
         FROM ({} UNION ALL \
           (SELECT seq FROM {{events}} FORCE INDEX (queue) WHERE shape = 4 AND place IN ({}))) r \
         :events ON e.seq = r.seq ORDER BY e.place, e.seq",
        vec![head; lanes].join(" UNION ALL "),
        marks(lanes)
    )
}
