//! Identifiers: of an event, and of one claim's lease.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::{Error, ErrorKind};

/// An event's identity: a UUIDv7 (RFC 9562, section 5.7) made by the producer.
///
/// It stays the same over all attempts and replays; receivers de-duplicate by it.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct EventId(Uuid);

impl EventId {
    /// A new, time-ordered id.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two calls give two values")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id with these 16 bytes, whatever version they encode.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The 16 bytes, in network order.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

/// The value that proves a claim: new for each claim, made by the relay before it claims.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken(Uuid);

impl LeaseToken {
    /// A new random token (UUIDv4).
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two calls give two values")]
    pub fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// The token with these 16 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The 16 bytes, in network order.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl From<Uuid> for EventId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl From<EventId> for Uuid {
    fn from(id: EventId) -> Self {
        id.0
    }
}

impl FromStr for EventId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Uuid::parse_str(text).map(Self).map_err(|source| {
            Error::new(
                ErrorKind::InvalidEvent,
                format!("`{text}` is no event id (a UUID)"),
            )
            .with_source(source)
        })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
