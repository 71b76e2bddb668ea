//! Dead letters. Replays, discards and prunes are transactions: letters are picked without locks,
//! those that nobody else has locked are locked, and these are changed.

use std::collections::BTreeSet;

use super::claiming::numbers;
use super::enqueue::CHUNKS;
use super::{Cell, Session, Statements, Value, sql};
use crate::clock::duration_micros;
use crate::sql::cut::cut;
use crate::sql::session::dead_letters;
use crate::sql::{Sql, TableNames, hex, json, micros};
use crate::{DeadLetter, DeadLetterFilter, DeathReason, Error, Page, Replay, error_text};

/// Where a filter starts: from numbers, from ids, or from all letters.
const SOURCES: [&str; 3] = [
    "JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) j :dead ON e.seq = j.n",
    "JSON_TABLE(?, '$[*]' COLUMNS (n VARCHAR(32) PATH '$')) j \
     STRAIGHT_JOIN {dead} e FORCE INDEX (event_id) ON e.id = UNHEX(j.n)",
    "JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) j STRAIGHT_JOIN {dead} e",
];

const FILTER: &str = "e.seq > ? \
    AND (? IS NULL OR FIND_IN_SET(HEX(e.id), ?) > 0) \
    AND (? IS NULL OR e.event_type = ?) AND (? IS NULL OR e.destination = ?) \
    AND (? IS NULL OR e.`key` = ?) AND (? IS NULL OR e.reason = ?) \
    AND e.dead_at <= :now - ?";

#[derive(Debug)]
pub(super) struct DeadLetterSql {
    /// The columns of an event, reason, when it died. Filter, rows.
    list: [Sql; 3],
    /// Locks the guard of replays.
    turn: Sql,
    /// `seq` of letters whose id is not open. Filter, rows.
    pick_replay: [Sql; 3],
    /// `seq`. Filter, rows.
    pick: [Sql; 3],
    /// Locks letters: `seq`, lane or null, id. Seqs.
    lock: Sql,
    /// Open events for letters, without content, for each of [`CHUNKS`]; for each row: `seq`, id, shape, lane
    /// or null, µs to wait twice.
    back: [Sql; 4],
    /// Their content. Seqs, new time to live in µs or null.
    fill: Sql,
    /// Those that are open again. Seqs.
    remove_open: Sql,
    /// Why, seqs.
    note: Sql,
    /// Seqs.
    remove: Sql,
    /// Locks block records: `seq`. Lanes.
    lock_blocks: Sql,
    /// Lane and `seq` of those whose key has no letter left, without locks. Lanes.
    without_letters: Sql,
    /// `[[lane, seq], …]`.
    unblock: Sql,
}

impl DeadLetterSql {
    pub(super) fn new(names: &TableNames) -> Self {
        let each = |template: &str| {
            SOURCES.map(|source| {
                let text = template
                    .replace(":source", source)
                    .replace(":filter", FILTER);
                sql(names, &text)
            })
        };
        Self {
            list: each(
                "SELECT :columns, e.reason, e.dead_at FROM :source WHERE :filter \
                 ORDER BY e.seq LIMIT ?",
            ),
            turn: sql(
                names,
                "SELECT g.slot FROM {guards} g WHERE g.slot = 64 :lock(g)",
            ),
            pick_replay: each(
                "SELECT e.seq FROM :source WHERE :filter \
                   AND NOT EXISTS (SELECT 1 FROM {events} o WHERE o.id = e.id) \
                 ORDER BY e.seq LIMIT ?",
            ),
            pick: each("SELECT e.seq FROM :source WHERE :filter ORDER BY e.seq LIMIT ?"),
            lock: sql(
                names,
                "SELECT e.seq, e.lane, e.id FROM :seqs :dead ON e.seq = j.n \
                 :lock(e) SKIP LOCKED",
            ),
            back: CHUNKS.map(|rows| sql(names, &back(rows))),
            fill: sql(names, FILL),
            remove_open: sql(
                names,
                "DELETE e FROM :seqs :dead ON e.seq = j.n \
                 STRAIGHT_JOIN {events} o FORCE INDEX (PRIMARY) ON o.seq = e.seq",
            ),
            note: sql(
                names,
                "INSERT INTO {discards} (seq, id, event_type, destination, `key`, death_reason, \
                   last_error, discard_reason, discarded_at) \
                 SELECT e.seq, e.id, e.event_type, e.destination, e.`key`, e.reason, \
                   e.last_error, ?, :now \
                 FROM :seqs :dead ON e.seq = j.n",
            ),
            remove: sql(names, "DELETE e FROM :seqs :dead ON e.seq = j.n"),
            lock_blocks: sql(
                names,
                "SELECT b.seq FROM :seqs \
                 STRAIGHT_JOIN {blocked} b FORCE INDEX (lane) ON b.lane = j.n :lock(b)",
            ),
            without_letters: sql(
                names,
                "SELECT b.lane, b.seq FROM :seqs STRAIGHT_JOIN {blocked} b FORCE INDEX (lane) \
                   ON b.lane = j.n \
                 WHERE NOT EXISTS (SELECT 1 FROM {dead} e WHERE e.lane = b.lane \
                   AND e.destination = b.destination AND e.`key` = b.`key`)",
            ),
            unblock: sql(
                names,
                "DELETE b FROM JSON_TABLE(?, '$[*]' COLUMNS ( \
                   lane BIGINT PATH '$[0]', seq BIGINT PATH '$[1]')) j \
                 STRAIGHT_JOIN {blocked} b FORCE INDEX (lane) ON b.lane = j.lane AND b.seq = j.seq",
            ),
        }
    }
}

/// By values: while an `INSERT … SELECT` runs, MariaDB lets nobody else insert (AUTO-INC lock), and it may
/// wait for a producer who is about to.
fn back(rows: usize) -> String {
    let row = "(?, ?, ?, COALESCE(?, :now + ?), :now + ?, :now, 0, '', '', '', '')";
    format!(
        "INSERT IGNORE INTO {{events}} (seq, id, shape, place, available_at, created_at, size, \
           event_type, destination, content_type, payload) VALUES {}",
        vec![row; rows].join(", ")
    )
}

const FILL: &str = "UPDATE :seqs :dead ON e.seq = j.n \
    STRAIGHT_JOIN {events} o FORCE INDEX (PRIMARY) ON o.seq = j.n SET \
      o.expires_at = :now + ?, o.replays = e.replays + 1, o.max_attempts = e.max_attempts, \
      o.size = LENGTH(e.payload), o.event_type = e.event_type, o.destination = e.destination, \
      o.`key` = e.`key`, o.content_type = e.content_type, o.aggregate_type = e.aggregate_type, \
      o.aggregate_id = e.aggregate_id, o.headers = e.headers, o.dedup_key = e.dedup_key, \
      o.last_error = e.last_error, o.payload = e.payload";

/// A filter as statements bind it.
struct Bound<'a> {
    source: usize,
    list: String,
    ids: Option<String>,
    filter: &'a DeadLetterFilter,
}

impl<'a> Bound<'a> {
    fn new(filter: &'a DeadLetterFilter) -> Self {
        let ids = || {
            let ids = filter.ids.iter().flatten();
            ids.map(|id| hex(id.as_bytes())).collect::<BTreeSet<_>>()
        };
        let (source, list) = match (&filter.seqs, &filter.ids) {
            (Some(seqs), _) => {
                let seqs: BTreeSet<i64> = seqs.iter().copied().collect();
                (0, json(&seqs.into_iter().collect::<Vec<_>>()))
            }
            (None, Some(_)) => (1, json(&ids().into_iter().collect::<Vec<_>>())),
            (None, None) => (2, "[1]".to_owned()),
        };
        let both = filter.ids.is_some() && filter.seqs.is_some();
        let names = || ids().into_iter().collect::<Vec<_>>().join(",");
        Self {
            source,
            list,
            ids: both.then(names),
            filter,
        }
    }

    fn values(&self, after: i64, rows: u32) -> Vec<Value<'_>> {
        let filter = self.filter;
        let mut values = vec![Value::Text(&self.list), Value::Int(after)];
        let bytes = |text: &'a Option<String>| Value::bytes(text.as_deref().map(str::as_bytes));
        for value in [
            Value::text(self.ids.as_deref()),
            bytes(&filter.event_type),
            bytes(&filter.destination),
            bytes(&filter.key),
            Value::text(filter.reason.map(DeathReason::as_str)),
        ] {
            values.extend([value, value]);
        }
        // Without a period, letters of a clock that was set back count too.
        let dead_for = filter.dead_for.map_or(i64::MIN / 4, duration_micros);
        values.extend([Value::Int(dead_for), Value::Int(rows.into())]);
        values
    }
}

/// A page of dead letters.
///
/// # Errors
///
/// Those of the session.
pub async fn list_dead<S: Session>(
    session: &mut S,
    sql: &Statements,
    filter: &DeadLetterFilter,
    page: &Page,
) -> Result<Vec<DeadLetter>, Error> {
    let bound = Bound::new(filter);
    let values = bound.values(page.after.unwrap_or(i64::MIN), page.rows);
    let list = &sql.dead_letters.list[bound.source];
    dead_letters(session, list, &values).await
}

/// Puts dead letters back among the pending events. One replay waits for another before it looks for
/// letters: where rows with the same ids are not purged yet, an insert shares locks on their entries of
/// the unique index and about the next ones, and two of them could each wait for what the other shares.
///
/// # Errors
///
/// Those of the session; nothing is changed where the transaction is not committed.
pub async fn replay<S: Session>(
    session: &mut S,
    sql: &Statements,
    replay: &Replay,
) -> Result<u64, Error> {
    let (bound, letters) = (Bound::new(&replay.filter), &sql.dead_letters);
    session.fetch(&letters.turn, &[], &[Cell::Int]).await?;
    let pick = &letters.pick_replay[bound.source];
    let picked = numbers(session, pick, &bound.values(i64::MIN, replay.rows)).await?;
    let locked = Locked::new(session, letters, &picked).await?;
    if locked.letters.is_empty() {
        return Ok(0);
    }
    let pace = micros(replay.pace);
    let wait = |place| pace.saturating_mul(place).min(i64::MAX / 4);
    let rows: Vec<_> = (0..).map(wait).zip(&locked.letters).collect();
    for (size, some) in cut(&rows, CHUNKS) {
        let values = some.iter().flat_map(|(wait, letter)| {
            let shape = if letter.lane.is_none() { 1 } else { 2 };
            let (id, wait) = (Value::Bytes(&letter.id), Value::Int(*wait));
            let (seq, lane) = (Value::Int(letter.seq), Value::int(letter.lane));
            [seq, id, Value::Int(shape), lane, wait, wait]
        });
        let values: Vec<_> = values.collect();
        session.execute(&letters.back[size], &values).await?;
    }
    let (ttl, seqs) = (Value::int(replay.expires_in.map(micros)), locked.seqs());
    let seqs = Value::Text(&seqs);
    session.execute(&letters.fill, &[seqs, ttl]).await?;
    let back = session.execute(&letters.remove_open, &[seqs]).await?;
    locked.unblock(session, letters).await?;
    Ok(back)
}

/// Deletes dead letters and records why.
///
/// # Errors
///
/// As [`replay`].
pub async fn discard<S: Session>(
    session: &mut S,
    sql: &Statements,
    filter: &DeadLetterFilter,
    rows: u32,
    reason: &str,
) -> Result<u64, Error> {
    let (bound, letters) = (Bound::new(filter), &sql.dead_letters);
    let pick = &letters.pick[bound.source];
    let picked = numbers(session, pick, &bound.values(i64::MIN, rows)).await?;
    let locked = Locked::new(session, letters, &picked).await?;
    let (seqs, reason) = (locked.seqs(), error_text(reason));
    let values = [Value::Text(&reason), Value::Text(&seqs)];
    session.execute(&letters.note, &values).await?;
    locked.remove(session, letters).await
}

/// Deletes these letters, but for those that are locked.
pub(super) async fn remove<S: Session>(
    session: &mut S,
    sql: &Statements,
    seqs: &[i64],
) -> Result<u64, Error> {
    let locked = Locked::new(session, &sql.dead_letters, seqs).await?;
    locked.remove(session, &sql.dead_letters).await
}

/// Letters that this transaction has locked.
struct Locked {
    letters: Vec<Letter>,
}

struct Letter {
    seq: i64,
    lane: Option<i64>,
    id: Vec<u8>,
}

impl Locked {
    async fn new<S: Session>(
        session: &mut S,
        sql: &DeadLetterSql,
        seqs: &[i64],
    ) -> Result<Self, Error> {
        let (list, cells) = (json(seqs), [Cell::Int, Cell::Int, Cell::Bytes]);
        let rows = session
            .fetch(&sql.lock, &[Value::Text(&list)], &cells)
            .await?;
        let letters = rows.into_iter().map(|mut row| Letter {
            seq: row.int(0),
            lane: row.maybe(1),
            id: row.bytes.pop().flatten().unwrap_or_default(),
        });
        let mut letters: Vec<Letter> = letters.collect();
        letters.sort_unstable_by_key(|letter| letter.seq);
        Ok(Self { letters })
    }

    /// As statements bind them.
    fn seqs(&self) -> String {
        let seqs = self.letters.iter().map(|letter| letter.seq);
        json(&seqs.collect::<Vec<_>>())
    }

    async fn remove<S: Session>(&self, session: &mut S, sql: &DeadLetterSql) -> Result<u64, Error> {
        let list = self.seqs();
        let removed = session.execute(&sql.remove, &[Value::Text(&list)]).await?;
        self.unblock(session, sql).await?;
        Ok(removed)
    }

    /// Ends the blocks of keys whose last letter is gone. The records are locked first, so that the
    /// second statement sees a letter that another transaction adds meanwhile. It takes no locks: one
    /// that another transaction takes away waits for the record, and looks after this one.
    async fn unblock<S: Session>(&self, session: &mut S, sql: &DeadLetterSql) -> Result<(), Error> {
        let lanes: BTreeSet<i64> = self.letters.iter().filter_map(|one| one.lane).collect();
        if lanes.is_empty() {
            return Ok(());
        }
        let lanes = json(&lanes.into_iter().collect::<Vec<_>>());
        let lanes = [Value::Text(&lanes)];
        session
            .fetch(&sql.lock_blocks, &lanes, &[Cell::Int])
            .await?;
        let cells = [Cell::Int; 2];
        let free = session.fetch(&sql.without_letters, &lanes, &cells).await?;
        let free: Vec<[i64; 2]> = free.iter().map(|row| [row.int(0), row.int(1)]).collect();
        if free.is_empty() {
            return Ok(());
        }
        let free = json(&free);
        session
            .execute(&sql.unblock, &[Value::Text(&free)])
            .await
            .map(drop)
    }
}
