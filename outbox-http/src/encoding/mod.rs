//! What the body of a request looks like.

mod cloud_events;
#[cfg(feature = "gzip")]
mod gzip;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use outbox_core::{Error, Event};

use cloud_events::CloudEvents;
#[cfg(feature = "gzip")]
pub(crate) use gzip::decode_start;

/// What the body of a request looks like. The signature covers the bytes as they are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoding {
    cloud_events: Option<CloudEvents>,
    #[cfg(feature = "gzip")]
    gzip: bool,
}

/// A request's body, and the headers that say what it is.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
}

impl Encoding {
    /// The payload, byte for byte, with the event's content type. The default.
    #[must_use]
    pub fn raw() -> Self {
        Self::default()
    }

    /// CloudEvents 1.0 in binary mode: the payload as it is, the attributes in `ce-` headers.
    /// `source` is a URI reference that says who sends.
    ///
    /// Signatures don't cover headers: choose structured mode where the attributes matter.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](outbox_core::ErrorKind::InvalidConfig): an empty source, or one with spaces
    /// or control characters.
    pub fn cloud_events_binary(source: &str) -> Result<Self, Error> {
        CloudEvents::new(source, false).map(Self::of)
    }

    /// CloudEvents 1.0 in structured mode: one JSON document of attributes and payload, all of it
    /// signed. A JSON payload is embedded byte for byte, another one as base64.
    ///
    /// # Errors
    ///
    /// As [`cloud_events_binary`](Self::cloud_events_binary).
    pub fn cloud_events_structured(source: &str) -> Result<Self, Error> {
        CloudEvents::new(source, true).map(Self::of)
    }

    fn of(cloud_events: CloudEvents) -> Self {
        let mut encoding = Self::raw();
        encoding.cloud_events = Some(cloud_events);
        encoding
    }

    /// Compresses the body. Only for receivers that are known to take it: what is signed is the
    /// compressed body, so they must verify before they decompress.
    #[cfg(feature = "gzip")]
    #[must_use]
    pub const fn gzip(mut self) -> Self {
        self.gzip = true;
        self
    }

    /// The request's body for an event. The problem is for people.
    pub(crate) fn encode(&self, event: &Event) -> Result<Encoded, String> {
        let encoded = match &self.cloud_events {
            Some(cloud_events) => cloud_events.encode(event)?,
            None => raw(event)?,
        };
        #[cfg(feature = "gzip")]
        if self.gzip {
            return gzip::encode(encoded);
        }
        Ok(encoded)
    }
}

/// The payload with its content type.
fn raw(event: &Event) -> Result<Encoded, String> {
    let content_type = HeaderValue::from_str(&event.content_type)
        .map_err(|_| "the event's content type is no header value".to_owned())?;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, content_type);
    Ok(Encoded {
        body: event.payload.clone(),
        headers,
    })
}
