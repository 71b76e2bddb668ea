//! What a producer enqueues.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::text::{Bytes as Length, Names};
use crate::{Error, EventId, shown_destination};

/// A type that is always enqueued under the same event type, and knows its ordering key.
///
/// ```
/// use outbox_core::{NewEvent, TypedEvent};
///
/// #[derive(serde::Serialize)]
/// struct RepositoryPushed { repo_id: i64, after: String }
///
/// impl TypedEvent for RepositoryPushed {
///     const EVENT_TYPE: &'static str = "RepositoryPushed";
///     fn key(&self) -> Option<String> { Some(self.repo_id.to_string()) }
/// }
///
/// let event = NewEvent::typed(&RepositoryPushed { repo_id: 7, after: "4f1c".into() })?;
/// assert_eq!(event.event_type(), "RepositoryPushed");
/// assert_eq!(event.ordering_key(), Some("7"));
/// # Ok::<(), outbox_core::Error>(())
/// ```
pub trait TypedEvent: Serialize {
    /// The name that receivers know the event by.
    const EVENT_TYPE: &'static str;

    /// The ordering key, or `None` where events of this type may overtake each other.
    fn key(&self) -> Option<String>;
}

/// An event that is not stored yet.
///
/// Only the type, the payload and the destination are required. The payload is stored and signed
/// byte for byte as given.
///
/// ```
/// use std::time::Duration;
/// use outbox_core::NewEvent;
///
/// let event = NewEvent::json("RepositoryPushed", &serde_json::json!({ "after": "4f1c" }))?
///     .to("https://ci.example/hooks")
///     .aggregate("repository", 7)
///     .key(7)
///     .delay(Duration::from_secs(5));
/// assert_eq!(event.payload().as_ref(), br#"{"after":"4f1c"}"#);
/// # Ok::<(), outbox_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct NewEvent {
    pub(crate) id: EventId,
    pub(crate) event_type: String,
    pub(crate) destination: String,
    pub(crate) payload: Bytes,
    pub(crate) content_type: String,
    pub(crate) aggregate_type: Option<String>,
    pub(crate) aggregate_id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) dedup_key: Option<String>,
    pub(crate) delay: Option<Duration>,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) max_attempts: Option<u32>,
}

/// Without the payload, the values of headers, and more of a URL than its host.
impl fmt::Debug for NewEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewEvent")
            .field("id", &self.id)
            .field("event_type", &self.event_type)
            .field("destination", &shown_destination(&self.destination))
            .field("payload", &Length(self.payload.len()))
            .field("content_type", &self.content_type)
            .field("aggregate_type", &self.aggregate_type)
            .field("aggregate_id", &self.aggregate_id)
            .field("key", &self.key)
            .field("headers", &Names(&self.headers))
            .field("dedup_key", &self.dedup_key)
            .field("delay", &self.delay)
            .field("expires_in", &self.expires_in)
            .field("max_attempts", &self.max_attempts)
            .finish()
    }
}

impl NewEvent {
    /// An event whose payload is these bytes, with content type `application/octet-stream`.
    pub fn bytes(event_type: impl Into<String>, payload: impl Into<Bytes>) -> Self {
        Self {
            id: EventId::new(),
            event_type: event_type.into(),
            destination: String::new(),
            payload: payload.into(),
            content_type: "application/octet-stream".to_owned(),
            aggregate_type: None,
            aggregate_id: None,
            key: None,
            headers: BTreeMap::new(),
            dedup_key: None,
            delay: None,
            expires_in: None,
            max_attempts: None,
        }
    }

    /// An event whose payload is `value` as JSON, with content type `application/json`.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) where `value` can't be written as JSON.
    pub fn json<T: Serialize + ?Sized>(
        event_type: impl Into<String>,
        value: &T,
    ) -> Result<Self, Error> {
        let payload = serde_json::to_vec(value).map_err(|source| {
            Error::invalid_event("payload", "can't be written as JSON").with_source(source)
        })?;
        Ok(Self::bytes(event_type, payload).content_type("application/json"))
    }

    /// A [`TypedEvent`] as JSON, with its type name and ordering key.
    ///
    /// # Errors
    ///
    /// As [`json`](Self::json).
    pub fn typed<T: TypedEvent>(value: &T) -> Result<Self, Error> {
        let mut event = Self::json(T::EVENT_TYPE, value)?;
        event.key = value.key();
        Ok(event)
    }

    /// Where it goes: a URL, a topic; the transport interprets it. Required.
    pub fn to(mut self, destination: impl Into<String>) -> Self {
        self.destination = destination.into();
        self
    }

    /// The ordering key: events of one destination and key are delivered in order. Default: none.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "takes numbers and strings alike"
    )]
    pub fn key(mut self, key: impl ToString) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// The kind and the id of the thing that changed. Descriptive; it does not order.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "takes numbers and strings alike"
    )]
    pub fn aggregate(mut self, kind: impl Into<String>, id: impl ToString) -> Self {
        self.aggregate_type = Some(kind.into());
        self.aggregate_id = Some(id.to_string());
        self
    }

    /// Replaces the generated id, for producers that bring their own.
    pub fn id(mut self, id: EventId) -> Self {
        self.id = id;
        self
    }

    /// The media type of the payload.
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = content_type.into();
        self
    }

    /// Adds a header that travels with the event (`traceparent`, say).
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// While this key is retained, a second enqueue with it stores nothing and reports the first
    /// event's id.
    pub fn dedup_key(mut self, key: impl Into<String>) -> Self {
        self.dedup_key = Some(key.into());
        self
    }

    /// Not delivered before this much time has passed since the enqueue. Default: at once.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Dead-lettered undelivered when this much time has passed since the enqueue; an attempt that has
    /// begun by then is not cut off. Default: never.
    pub const fn expires_in(mut self, after: Duration) -> Self {
        self.expires_in = Some(after);
        self
    }

    /// Overrides the retry policy's limit of attempts. At least 1.
    pub const fn max_attempts(mut self, limit: u32) -> Self {
        self.max_attempts = Some(limit);
        self
    }
}

/// What was set.
impl NewEvent {
    /// The id.
    #[must_use]
    pub const fn event_id(&self) -> EventId {
        self.id
    }

    /// The type name.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The destination; empty where none was set.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// The payload, byte for byte.
    #[must_use]
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The media type of the payload.
    #[must_use]
    pub fn media_type(&self) -> &str {
        &self.content_type
    }

    /// The kind of aggregate.
    #[must_use]
    pub fn aggregate_type(&self) -> Option<&str> {
        self.aggregate_type.as_deref()
    }

    /// The aggregate's id.
    #[must_use]
    pub fn aggregate_id(&self) -> Option<&str> {
        self.aggregate_id.as_deref()
    }

    /// The ordering key.
    #[must_use]
    pub fn ordering_key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The headers, by name.
    #[must_use]
    pub const fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// The de-duplication key.
    #[must_use]
    pub fn dedup(&self) -> Option<&str> {
        self.dedup_key.as_deref()
    }

    /// The delay before the first attempt.
    #[must_use]
    pub const fn delayed_by(&self) -> Option<Duration> {
        self.delay
    }

    /// The time to live since the enqueue.
    #[must_use]
    pub const fn time_to_live(&self) -> Option<Duration> {
        self.expires_in
    }

    /// The event's own limit of attempts.
    #[must_use]
    pub const fn attempt_limit(&self) -> Option<u32> {
        self.max_attempts
    }
}
