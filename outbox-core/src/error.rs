//! The one error type that stores, builders and checks report.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// What kind of fault an [`Error`] is. The relay branches on this and on nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store can't be reached or answer now (connection, pool, time-out). Trying again helps.
    Unavailable,
    /// Another transaction was in the way (deadlock, serialisation failure, busy). Trying again helps.
    Conflict,
    /// The caller no longer holds the lease that it tried to use.
    LeaseLost,
    /// The event breaks a limit; the message names the field, the value and the limit.
    InvalidEvent,
    /// A setting is refused; the message names the field, the value and what is allowed.
    InvalidConfig,
    /// The tables are missing, or older or newer than this library can use.
    Schema,
    /// The store can't do this at all.
    Unsupported,
    /// Anything else; the source says more.
    Other,
}

/// An opaque error: a [kind](ErrorKind), a message of this level, and the cause in
/// [`source`](StdError::source).
///
/// `Display` prints this level only, so that a reporter that walks the chain prints nothing twice.
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Source>,
}

impl Error {
    /// An error with no cause below it.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// An [`ErrorKind::InvalidEvent`] that names the field.
    pub fn invalid_event(field: &str, problem: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::InvalidEvent,
            format!("event field `{field}` {problem}"),
        )
    }

    /// An [`ErrorKind::InvalidConfig`] that names the setting.
    pub fn invalid_config(field: &str, problem: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::InvalidConfig,
            format!("setting `{field}` {problem}"),
        )
    }

    /// What kind of fault this is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True where the same call may succeed later without a change:
    /// [`Unavailable`](ErrorKind::Unavailable) and [`Conflict`](ErrorKind::Conflict).
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Conflict)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.kind)
            .field("message", &self.message);
        if let Some(source) = &self.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_prints_one_level_and_source_holds_the_next() {
        let error = Error::new(ErrorKind::Unavailable, "claim failed")
            .with_source(std::io::Error::other("socket closed"));
        assert_eq!(error.to_string(), "claim failed");
        assert_eq!(error.source().unwrap().to_string(), "socket closed");
        assert!(error.is_retryable());
    }
}
