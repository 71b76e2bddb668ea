//! From stored columns to an event.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::{Claimed, Event, EventId, LeaseToken};

/// The columns of a stored event, as a driver reads them.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "built by every adapter")]
#[expect(missing_docs, reason = "named as in `Event`")]
pub struct EventRow {
    pub seq: i64,
    pub id: [u8; 16],
    pub event_type: String,
    pub destination: String,
    pub key: Option<String>,
    pub payload: Bytes,
    pub content_type: String,
    pub aggregate_type: Option<String>,
    pub aggregate_id: Option<String>,
    /// A JSON object of strings; none where there are no headers.
    pub headers: Option<String>,
    pub dedup_key: Option<String>,
    pub created_at: SystemTime,
    pub expires_at: Option<SystemTime>,
    pub max_attempts: Option<i32>,
    pub attempts: i32,
    pub replays: i32,
    pub last_error: Option<String>,
}

/// Its number alone: the rest is as secret as the event.
impl fmt::Debug for EventRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRow")
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

impl EventRow {
    /// Stands for a row whose columns can't even be read.
    #[must_use]
    pub fn unreadable(seq: i64) -> Self {
        Self {
            seq,
            id: [0; 16],
            event_type: String::new(),
            destination: String::new(),
            key: None,
            payload: Bytes::new(),
            content_type: String::new(),
            aggregate_type: None,
            aggregate_id: None,
            headers: None,
            dedup_key: None,
            created_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            max_attempts: None,
            attempts: 0,
            replays: 0,
            last_error: None,
        }
    }

    /// The event.
    ///
    /// # Errors
    ///
    /// What is wrong with the row, for [`Undecodable`](crate::Undecodable).
    pub fn event(self) -> Result<Event, String> {
        let headers = match &self.headers {
            None => BTreeMap::new(),
            Some(text) => serde_json::from_str(text).map_err(|error| {
                format!("column `headers` is no JSON object of strings: {error}")
            })?,
        };
        let count = |column: &str, value: i32| {
            u32::try_from(value).map_err(|_| format!("column `{column}` is {value}"))
        };
        let max_attempts = match self.max_attempts {
            None => None,
            Some(limit) => Some(count("max_attempts", limit)?),
        };
        Ok(Event {
            id: EventId::from_bytes(self.id),
            seq: self.seq,
            event_type: self.event_type,
            destination: self.destination,
            payload: self.payload,
            content_type: self.content_type,
            aggregate_type: self.aggregate_type,
            aggregate_id: self.aggregate_id,
            key: self.key,
            headers,
            dedup_key: self.dedup_key,
            created_at: self.created_at,
            expires_at: self.expires_at,
            max_attempts,
            attempts: count("attempts", self.attempts)?,
            replays: count("replays", self.replays)?,
            last_error: self.last_error,
        })
    }

    /// The event, with nothing in the place of what can't be read: for dead letters, which must
    /// be listed whatever they hold.
    #[must_use]
    pub fn event_as_far_as_readable(mut self) -> Event {
        for count in [&mut self.attempts, &mut self.replays] {
            *count = (*count).max(0);
        }
        self.max_attempts = self.max_attempts.filter(|limit| *limit >= 0);
        let seq = self.seq;
        let bare = Self {
            headers: None,
            ..self.clone()
        };
        self.event()
            .or_else(|_| bare.event())
            .unwrap_or_else(|_| Event::new(EventId::from_bytes([0; 16]), seq, "", "", Bytes::new()))
    }

    /// The event under the claim with `token`, made at `now` by the store's clock.
    ///
    /// # Errors
    ///
    /// As [`event`](Self::event).
    pub fn claimed(
        self,
        token: LeaseToken,
        now: SystemTime,
        death_blocks: bool,
    ) -> Result<Claimed, String> {
        let event = self.event()?;
        let expired = event.expires_at.is_some_and(|end| end <= now);
        let age = now
            .duration_since(event.created_at)
            .unwrap_or(Duration::ZERO);
        let mut claimed = Claimed::new(event, token);
        claimed.expired = expired;
        claimed.age = age;
        claimed.death_blocks = death_blocks;
        Ok(claimed)
    }
}

/// Headers as they are stored: a JSON object, or nothing.
#[must_use]
pub fn header_text(headers: &BTreeMap<String, String>) -> Option<String> {
    if headers.is_empty() {
        return None;
    }
    let map = headers
        .iter()
        .map(|(name, value)| (name.clone(), serde_json::Value::from(value.as_str())))
        .collect();
    Some(serde_json::Value::Object(map).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> EventRow {
        EventRow {
            seq: 1,
            id: [7; 16],
            event_type: "T".to_owned(),
            destination: "d".to_owned(),
            key: None,
            payload: Bytes::from_static(b"\0\xff"),
            content_type: "c".to_owned(),
            aggregate_type: None,
            aggregate_id: None,
            headers: None,
            dedup_key: None,
            created_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            max_attempts: None,
            attempts: 1,
            replays: 0,
            last_error: None,
        }
    }

    #[test]
    fn headers_survive_the_way_there_and_back() {
        let headers = BTreeMap::from([("a".to_owned(), "\"é\"".to_owned())]);
        let mut stored = row();
        stored.headers = header_text(&headers);
        assert_eq!(stored.event().unwrap().headers, headers);
        assert_eq!(header_text(&BTreeMap::new()), None);
    }

    #[test]
    fn a_row_that_makes_no_event_says_which_column() {
        let mut broken = row();
        broken.headers = Some("[1]".to_owned());
        assert!(broken.event().unwrap_err().contains("`headers`"));
        let mut broken = row();
        broken.headers = Some("[1]".to_owned());
        broken.replays = -1;
        assert_eq!(broken.event_as_far_as_readable().payload.len(), 2);
        let mut broken = row();
        broken.attempts = -1;
        assert_eq!(broken.event().unwrap_err(), "column `attempts` is -1");
    }
}
