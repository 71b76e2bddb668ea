//! A stored event, as a relay and an operator see it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;

use crate::text::{Bytes as Length, Names};
use crate::{EventId, shown_destination};

/// An event as a store hands it out. All instants are the store's clock.
///
/// `Debug` shows neither the payload nor the values of headers, and of a URL the host only.
///
/// Made by store adapters with [`Event::new`]; fields beyond the required ones are then assigned.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The producer's id, stable over attempts and replays.
    pub id: EventId,
    /// The store's number: ascending in the order of insertion, never reused.
    pub seq: i64,
    /// The type name.
    pub event_type: String,
    /// Where it goes; the transport interprets it.
    pub destination: String,
    /// The payload, byte for byte as enqueued.
    pub payload: Bytes,
    /// The media type of the payload.
    pub content_type: String,
    /// The kind of the thing that changed.
    pub aggregate_type: Option<String>,
    /// The id of the thing that changed.
    pub aggregate_id: Option<String>,
    /// The ordering key.
    pub key: Option<String>,
    /// The headers that travel with it.
    pub headers: BTreeMap<String, String>,
    /// The de-duplication key it was enqueued with.
    pub dedup_key: Option<String>,
    /// When it was enqueued; a replay restarts it.
    pub created_at: SystemTime,
    /// When it is dead-lettered undelivered.
    pub expires_at: Option<SystemTime>,
    /// Its own limit of attempts.
    pub max_attempts: Option<u32>,
    /// Attempts so far, the current one included: counted at claim.
    pub attempts: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// What the last failed attempt said, cleaned and capped by [`error_text`](crate::error_text).
    pub last_error: Option<String>,
}

impl Event {
    /// An event with the required fields; the others are empty, zero, or the epoch.
    #[must_use]
    pub fn new(
        id: EventId,
        seq: i64,
        event_type: impl Into<String>,
        destination: impl Into<String>,
        payload: impl Into<Bytes>,
    ) -> Self {
        Self {
            id,
            seq,
            event_type: event_type.into(),
            destination: destination.into(),
            payload: payload.into(),
            content_type: "application/octet-stream".to_owned(),
            aggregate_type: None,
            aggregate_id: None,
            key: None,
            headers: BTreeMap::new(),
            dedup_key: None,
            created_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            max_attempts: None,
            attempts: 0,
            replays: 0,
            last_error: None,
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("id", &self.id)
            .field("seq", &self.seq)
            .field("event_type", &self.event_type)
            .field("destination", &shown_destination(&self.destination))
            .field("payload", &Length(self.payload.len()))
            .field("content_type", &self.content_type)
            .field("aggregate_type", &self.aggregate_type)
            .field("aggregate_id", &self.aggregate_id)
            .field("key", &self.key)
            .field("headers", &Names(&self.headers))
            .field("dedup_key", &self.dedup_key)
            .field("created_at", &self.created_at)
            .field("expires_at", &self.expires_at)
            .field("max_attempts", &self.max_attempts)
            .field("attempts", &self.attempts)
            .field("replays", &self.replays)
            .field("last_error", &self.last_error)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_payload_no_header_and_no_token_of_a_url() {
        let to = "https://user:hunter2@ci.example/T0/hunter2?token=hunter2";
        let mut event = Event::new(EventId::new(), 7, "Pushed", to, "hunter2");
        event
            .headers
            .insert("authorization".into(), "hunter2".into());
        let new = crate::NewEvent::bytes("Pushed", "hunter2")
            .to(to)
            .header("authorization", "hunter2");
        for shown in [format!("{event:?}"), format!("{new:?}")] {
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.contains("7 bytes") && shown.contains("authorization"));
        }
    }
}
