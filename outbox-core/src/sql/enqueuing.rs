//! New events as columns, in batches that a statement takes.

use std::collections::{HashMap, HashSet};

use super::{header_text, micros};
use crate::{Enqueued, EventId, NewEvent};

/// The most rows and bytes of one statement.
const ROWS: usize = 10_000;
const BYTES: usize = 16 << 20;
/// The most bytes where there are de-duplication keys, whatever the rows: a statement takes its keys in
/// their order, several do not. (PostgreSQL has room for 1 GiB in a message, and in a value.)
const BYTES_WITH_KEYS: usize = 256 << 20;

/// A new event's columns.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "named as in `NewEvent`")]
pub struct NewRow<'a> {
    pub id: EventId,
    pub event_type: &'a str,
    pub destination: &'a str,
    pub key: Option<&'a str>,
    pub payload: &'a [u8],
    pub content_type: &'a str,
    pub aggregate_type: Option<&'a str>,
    pub aggregate_id: Option<&'a str>,
    /// A JSON object of strings; none where there are no headers.
    pub headers: Option<String>,
    pub dedup_key: Option<&'a str>,
    pub max_attempts: Option<i32>,
    /// In µs; none where it is zero.
    pub delay: Option<i64>,
    /// In µs.
    pub ttl: Option<i64>,
}

impl<'a> NewRow<'a> {
    /// The columns of `event`.
    #[must_use]
    pub fn new(event: &'a NewEvent) -> Self {
        Self {
            id: event.id,
            event_type: &event.event_type,
            destination: &event.destination,
            key: event.key.as_deref(),
            payload: &event.payload,
            content_type: &event.content_type,
            aggregate_type: event.aggregate_type.as_deref(),
            aggregate_id: event.aggregate_id.as_deref(),
            headers: header_text(&event.headers),
            dedup_key: event.dedup_key.as_deref(),
            max_attempts: event
                .max_attempts
                .map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)),
            delay: event.delay.map(micros).filter(|delay| *delay > 0),
            ttl: event.expires_in.map(micros),
        }
    }

    /// Whether it has a delay or a time to live.
    #[must_use]
    pub const fn is_timed(&self) -> bool {
        self.delay.is_some() || self.ttl.is_some()
    }
}

/// A column of many events that few events have; none where none has it.
#[must_use]
pub fn sparse<'a, T>(
    rows: &'a [NewRow<'a>],
    column: impl Fn(&'a NewRow<'a>) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    let any = rows.iter().any(|row| column(row).is_some());
    any.then(|| rows.iter().map(column).collect())
}

/// The events of a bulk enqueue, each de-duplication key once, cut into batches.
#[derive(Debug)]
pub struct Batches<'a> {
    events: &'a [NewEvent],
    rows: usize,
    bytes: usize,
}

impl<'a> Batches<'a> {
    /// Batches of these events for statements that take up to 10,000 rows or 16 MiB; 256 MiB where there
    /// are de-duplication keys.
    #[must_use]
    pub fn new(events: &'a [NewEvent]) -> Self {
        let keys = events.iter().any(|event| event.dedup_key.is_some());
        let (rows, bytes) = match keys {
            true => (usize::MAX, BYTES_WITH_KEYS),
            false => (ROWS, BYTES),
        };
        Self {
            events,
            rows,
            bytes,
        }
    }

    /// The same for statements that take up to `rows` rows.
    #[must_use]
    pub const fn of(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// The same for statements that take up to `bytes` bytes of payloads, headers and names. (One
    /// event goes whatever its size.)
    #[must_use]
    pub const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// The batches.
    #[must_use]
    pub fn iter(&self) -> Vec<Vec<&'a NewEvent>> {
        let mut keys = HashSet::new();
        let mut batches = Vec::new();
        let mut batch = Vec::new();
        let mut bytes = 0;
        for event in self.events {
            if event
                .dedup_key
                .as_ref()
                .is_some_and(|key| !keys.insert(key))
            {
                continue;
            }
            let size = size(event);
            if batch.len() == self.rows || (!batch.is_empty() && bytes + size > self.bytes) {
                batches.push(std::mem::take(&mut batch));
                bytes = 0;
            }
            bytes += size;
            batch.push(event);
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        batches
    }

    /// The answers for all events, given who has the de-duplication keys.
    #[must_use]
    pub fn answers(&self, winners: &Winners) -> Vec<Enqueued> {
        let mut told = HashSet::new();
        let answer = |event: &NewEvent| {
            let winner = event.dedup_key.as_ref().and_then(|key| winners.get(key));
            match winner {
                Some((id, new)) if !new || !told.insert(*id) => Enqueued::duplicate_of(*id),
                _ => Enqueued::stored(event.id),
            }
        };
        self.events.iter().map(answer).collect()
    }
}

/// About how many bytes of a statement an event takes.
fn size(event: &NewEvent) -> usize {
    /// Its id, its numbers, and what a driver says about each column.
    const FIXED: usize = 160;
    let optional = [
        &event.key,
        &event.aggregate_type,
        &event.aggregate_id,
        &event.dedup_key,
    ];
    let headers = event
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 8);
    FIXED
        + event.payload.len()
        + event.event_type.len()
        + event.destination.len()
        + event.content_type.len()
        + optional
            .into_iter()
            .flatten()
            .map(String::len)
            .sum::<usize>()
        + headers.sum::<usize>()
}

/// For each de-duplication key, the id of its first event, and whether that was stored just now.
pub type Winners = HashMap<String, (EventId, bool)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_names_count_as_bytes_too() {
        let event = || NewEvent::bytes("T", "x").to("d".repeat(1_000));
        let large = || event().header("a", "b".repeat(4_000));
        let events = [event(), event(), large(), large(), event()];
        let batches = Batches::new(&events).bytes(5_000).iter();
        let rows: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!(rows, [2, 1, 1, 1]);
    }

    #[test]
    fn the_first_of_a_key_wins_and_answers_keep_their_order() {
        let event = || NewEvent::bytes("T", "x").to("d");
        let first = event().dedup_key("k");
        let events = [event(), first.clone(), event().dedup_key("k")];
        let batches = Batches::new(&events).of(1);
        assert_eq!(batches.iter().len(), 2);
        let winners = Winners::from([("k".to_owned(), (first.id, true))]);
        let answers = batches.answers(&winners);
        assert_eq!(answers[0], Enqueued::stored(events[0].id));
        assert_eq!(answers[1], Enqueued::stored(first.id));
        assert_eq!(answers[2], Enqueued::duplicate_of(first.id));
        // The same event again, after an ambiguous commit.
        let winners = Winners::from([("k".to_owned(), (first.id, false))]);
        assert_eq!(
            batches.answers(&winners)[1],
            Enqueued::duplicate_of(first.id)
        );
    }
}
