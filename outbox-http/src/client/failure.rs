//! What went wrong below the outcome: one type for every failed attempt.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use http::StatusCode;
use hyper_util::client::legacy;
use outbox_core::DeliveryError;

use super::chain::{chain, find};
use super::connect::{ConnectTimedOut, LookupFailed};
use super::proxy::TunnelFailed;
use crate::guard::Refused;

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// What went wrong in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpFailureKind {
    /// The address guard refuses the destination.
    Refused,
    /// The name can't be looked up.
    Dns,
    /// The connection can't be made.
    Connect,
    /// The connection was not made in time.
    ConnectTimeout,
    /// The TLS handshake failed: a certificate that isn't trusted, no common version.
    Tls,
    /// The egress proxy can't be reached, or refuses: nothing to do with the receiver.
    Proxy,
    /// The connection broke after the request may have been written, before an answer.
    Broken,
    /// The answer is no HTTP.
    Protocol,
    /// No head of an answer came in time.
    HeadTimeout,
    /// The whole attempt took too long.
    TotalTimeout,
    /// The receiver answered with a status that means failure.
    Status(StatusCode),
    /// The signer failed.
    Signing,
    /// The event can't be made into a request.
    Request,
    /// The destination is unknown, disabled, not signed for, or could not be resolved.
    Destination,
}

/// What went wrong in an attempt: the source of the [`DeliveryError`] that a transport of this crate
/// returns.
#[derive(Debug)]
pub struct HttpFailure {
    kind: HttpFailureKind,
    detail: Option<String>,
    source: Option<Source>,
}

impl HttpFailure {
    pub(crate) const fn new(kind: HttpFailureKind) -> Self {
        Self {
            kind,
            detail: None,
            source: None,
        }
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The failure inside a delivery error, where this crate's transport made it.
    #[must_use]
    pub fn of(error: &DeliveryError) -> Option<&Self> {
        StdError::source(error)?.downcast_ref()
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> HttpFailureKind {
        self.kind
    }

    /// The status of the answer, where there was one.
    #[must_use]
    pub const fn status(&self) -> Option<StatusCode> {
        match self.kind {
            HttpFailureKind::Status(status) => Some(status),
            _ => None,
        }
    }
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(detail) = &self.detail {
            return f.write_str(detail);
        }
        f.write_str(match self.kind {
            HttpFailureKind::Refused => "the address guard refuses the destination",
            HttpFailureKind::Dns => "the name can't be looked up",
            HttpFailureKind::Connect => "no connection",
            HttpFailureKind::ConnectTimeout => "the connection was not made in time",
            HttpFailureKind::Tls => "the TLS handshake failed",
            HttpFailureKind::Proxy => "the egress proxy can't be used",
            HttpFailureKind::Broken => "the connection broke before an answer came",
            HttpFailureKind::Protocol => "the answer is no HTTP",
            HttpFailureKind::HeadTimeout => "no answer came in time",
            HttpFailureKind::TotalTimeout => "the attempt took too long",
            HttpFailureKind::Status(_) => "the body of the answer is empty",
            HttpFailureKind::Signing => "the signer failed",
            HttpFailureKind::Request => "the event can't be made into a request",
            HttpFailureKind::Destination => "the destination can't be used",
        })
    }
}

impl StdError for HttpFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

/// Classifies what hyper reports, by type and never by text.
pub(super) fn from_hyper(error: &legacy::Error) -> HttpFailure {
    let kind = kind_of(error, error.is_connect());
    HttpFailure::new(kind).with_source(root(error))
}

/// The same for reqwest, whose own texts hold the URL.
#[cfg(feature = "reqwest")]
pub(super) fn from_reqwest(error: reqwest::Error) -> HttpFailure {
    let error = error.without_url();
    let kind = if error.is_timeout() {
        if error.is_connect() {
            HttpFailureKind::ConnectTimeout
        } else {
            HttpFailureKind::TotalTimeout
        }
    } else if error.is_redirect() {
        HttpFailureKind::Protocol
    } else {
        kind_of(&error, error.is_connect())
    };
    HttpFailure::new(kind).with_source(root(&error))
}

fn kind_of(error: &(dyn StdError + 'static), connecting: bool) -> HttpFailureKind {
    if find::<Refused>(error).is_some() {
        return HttpFailureKind::Refused;
    }
    if find::<ConnectTimedOut>(error).is_some() {
        return HttpFailureKind::ConnectTimeout;
    }
    match find::<TunnelFailed>(error) {
        Some(TunnelFailed::Target(_)) => return HttpFailureKind::Connect,
        Some(_) => return HttpFailureKind::Proxy,
        None => {}
    }
    if find::<rustls::Error>(error).is_some() {
        return HttpFailureKind::Tls;
    }
    if find::<LookupFailed>(error).is_some() {
        return HttpFailureKind::Dns;
    }
    match find::<hyper::Error>(error) {
        Some(e) if e.is_parse() => HttpFailureKind::Protocol,
        _ if connecting => HttpFailureKind::Connect,
        _ => HttpFailureKind::Broken,
    }
}

/// The innermost cause alone: the layers above it say "client error" and "error trying to connect".
fn root(error: &(dyn StdError + 'static)) -> Source {
    let text = chain(error)
        .last()
        .map_or_else(String::new, ToString::to_string);
    let kind = find::<io::Error>(error).map_or(io::ErrorKind::Other, io::Error::kind);
    Box::new(io::Error::new(kind, text))
}
