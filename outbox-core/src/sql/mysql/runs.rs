//! Runs of keys. Which lanes can give rows is looked for without locks; the lanes' guards are locked
//! and kept; then, in a snapshot that is taken while they are held, the lanes' rows are read, and
//! those that can be taken are locked.

use std::collections::{BTreeMap, HashSet};

use super::claim::LANES;
use super::claiming::{Claiming, Entry, count, is_cut, numbers};
use super::{Cell, Row, Session, Value};
use crate::Error;
use crate::sql::cut::cut;
use crate::sql::json;

/// How many passes over lanes a claim makes.
const PASSES: usize = 4;
/// The most lanes that a claim takes from.
const MOST: usize = LANES[0];

struct Member {
    entry: Entry,
    size: i64,
}

impl Member {
    const fn seq(&self) -> i64 {
        self.entry[2]
    }
}

/// What can be taken of a lane.
struct Run {
    members: Vec<Member>,
    /// All rows of the lane whose lease has ended, members or not.
    ended: Vec<Entry>,
}

impl<S: Session> Claiming<'_, S> {
    pub(super) async fn keyed(&mut self, rows: usize) -> Result<(), Error> {
        let mut lanes = self.expired_lanes(rows.min(MOST)).await?;
        lanes.extend(self.lanes(rows.min(MOST)).await?);
        let mut seen = HashSet::new();
        lanes.retain(|lane| seen.insert(*lane));
        lanes.truncate(MOST);
        let slots: HashSet<i64> = lanes.iter().copied().map(slot).collect();
        if slots.is_empty() {
            return Ok(());
        }
        let list = json(&slots.into_iter().collect::<Vec<_>>());
        let guarded = numbers(self.session, &self.sql.claim.guards, &[Value::Text(&list)]).await?;
        lanes.retain(|lane| guarded.contains(&slot(*lane)));
        let runs = self.runs(&lanes, rows).await?;
        self.take_runs(runs, rows).await
    }

    /// Lanes whose leases have expired.
    async fn expired_lanes(&mut self, most: usize) -> Result<Vec<i64>, Error> {
        let after = self.state.turns().expired_lane;
        let values = [Value::Int(after), Value::Int(self.now)];
        let mut lanes = numbers(self.session, &self.sql.claim.expired_lanes, &values).await?;
        lanes.truncate(most.div_ceil(2));
        self.state.turns().expired_lane = lanes.last().copied().unwrap_or(-1);
        Ok(lanes)
    }

    /// Lanes that may be ready, from the one on whose turn it is, and round once.
    async fn lanes(&mut self, most: usize) -> Result<Vec<i64>, Error> {
        let begun = self.state.turns().lane;
        let entries = (8 * most).clamp(64, 500);
        let (mut after, mut found, mut is_round) = (begun, Vec::new(), false);
        for _ in 0..PASSES {
            let mut values = vec![Value::Int(self.now)];
            values.extend(self.filter.values());
            values.extend([Value::Int(after), Value::Int(count(entries))]);
            let sql = &self.sql.claim.lanes;
            let walked = self.session.fetch(sql, &values, &[Cell::Int; 4]).await?;
            let mut cut = false;
            for lane in &walked {
                if found.len() == most {
                    cut = true;
                    break;
                }
                after = lane.int(0);
                if lane.is(1) && lane.int(3) <= self.now {
                    found.push(after);
                } else if lane.is(1) {
                    let waits = Some(lane.int(3));
                    self.next_due = self.next_due.into_iter().chain(waits).min();
                }
            }
            if cut || found.len() == most {
                break;
            }
            if !is_cut(&walked, entries) {
                if begun == -1 || after == -1 {
                    after = -1;
                    is_round = true;
                    break;
                }
                after = -1;
            }
        }
        if found.is_empty() && !is_round {
            self.next_due = Some(self.now); // There is more to look through.
        }
        self.state.turns().lane = after;
        Ok(found)
    }

    /// The rows of each lane that can be taken, from its head on.
    async fn runs(&mut self, lanes: &[i64], rows: usize) -> Result<Vec<Run>, Error> {
        let window = 2 * rows / lanes.len().max(1) + 16;
        let mut runs = Vec::new();
        for (size, part) in cut(lanes, LANES) {
            let mut values = self.filter.values().to_vec();
            for lane in part {
                values.extend([Value::Int(*lane), Value::Int(count(window))]);
            }
            values.extend(part.iter().map(|lane| Value::Int(*lane)));
            let sql = &self.sql.claim.runs[size];
            let found = self.session.fetch(sql, &values, &[Cell::Int; 7]).await?;
            runs.extend(ready(&found, window, self.now));
        }
        Ok(runs)
    }

    /// Takes the first row of each run, then the second: so keys share the limits.
    async fn take_runs(&mut self, mut runs: Vec<Run>, rows: usize) -> Result<(), Error> {
        let mut left = rows;
        let longest = runs.iter().map(|run| run.members.len()).max().unwrap_or(0);
        let mut lengths = vec![0; runs.len()];
        for rank in 0..longest {
            for (run, length) in runs.iter().zip(&mut lengths) {
                if left > 0 && rank < run.members.len() {
                    *length += 1;
                    left -= 1;
                }
            }
        }
        for (run, length) in runs.iter_mut().zip(lengths) {
            run.members.truncate(length);
        }
        self.lock(&mut runs).await?;
        for rank in 0..longest {
            for run in &runs {
                if let Some(member) = run.members.get(rank)
                    && !self.keep_one(member.seq(), member.size)
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A row that a late settle holds ends its run. Where one whose lease has ended can't be locked,
    /// or is no more as it was, there is no run: an extension that began in time may be under way. One
    /// that locks the row later finds that the lease has ended.
    async fn lock(&mut self, runs: &mut [Run]) -> Result<(), Error> {
        let taken = runs.iter().filter(|run| !run.members.is_empty());
        let rows = taken.flat_map(|run| {
            let members = run.members.iter().map(|member| &member.entry);
            members.chain(&run.ended)
        });
        let mut entries: Vec<Entry> = rows.copied().collect();
        if entries.is_empty() {
            return Ok(());
        }
        entries.sort_unstable();
        entries.dedup();
        let (list, now) = (json(&entries), Value::Int(self.now));
        let locked = [Value::Text(&list), now, now];
        let locked = numbers(self.session, &self.sql.claim.lock_runs, &locked).await?;
        let locked: HashSet<i64> = locked.into_iter().collect();
        for run in runs {
            let members = run.members.iter();
            let whole = members.take_while(|member| locked.contains(&member.seq()));
            let is_free = run.ended.iter().all(|[.., seq]| locked.contains(seq));
            let length = if is_free { whole.count() } else { 0 };
            run.members.truncate(length);
        }
        Ok(())
    }
}

/// Which of the guards is a lane's.
const fn slot(lane: i64) -> i64 {
    (lane >> 54) & 63
}

/// The rows that can be taken of each lane, given some of its rows: up to `window` that are under
/// no lease, and all that are.
fn ready(rows: &[Row], window: usize, now: i64) -> Vec<Run> {
    let mut lanes: BTreeMap<i64, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        lanes.entry(row.int(1)).or_default().push(row);
    }
    lanes
        .into_values()
        .map(|rows| ready_of_lane(&rows, window, now))
        .collect()
}

fn ready_of_lane(rows: &[&Row], window: usize, now: i64) -> Run {
    let leased = |row: &&&Row| row.maybe(5).is_some_and(|until| until > now);
    if rows.iter().any(|row| leased(&row)) {
        return Run {
            members: Vec::new(),
            ended: Vec::new(),
        };
    }
    // Rows behind the window may have others before them that are not here.
    let waiting: Vec<i64> = rows
        .iter()
        .filter(|row| row.int(3) == 2)
        .map(|row| row.int(0))
        .collect();
    let end = match waiting.last() {
        Some(last) if waiting.len() >= window => *last,
        _ => i64::MAX,
    };
    let from_head = rows.iter();
    let due = from_head.take_while(|row| row.int(0) <= end && row.int(4) <= now && row.is(6));
    let ended = rows.iter().filter(|row| row.int(3) == 4);
    let entry = |row: &Row| [row.int(3), row.int(1), row.int(0)];
    Run {
        members: due
            .map(|row| Member {
                entry: entry(row),
                size: row.int(2),
            })
            .collect(),
        ended: ended.map(|row| entry(row)).collect(),
    }
}
