//! Verification for receivers: framework-free, over raw bytes and headers.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderMap;

use crate::clock::{WallClock, parse_timestamp};

/// The longest id, in bytes.
pub(crate) const MAX_ID: usize = 256;
/// The most signatures in one delivery.
pub(crate) const MAX_SIGNATURES: usize = 16;
/// The longest signature header, in bytes.
pub(crate) const MAX_SIGNATURE_HEADER: usize = 4_096;
/// How far a timestamp may lie from the receiver's clock, both ways.
pub(crate) const DEFAULT_TOLERANCE: Duration = Duration::from_secs(300);

/// Checks that a delivery comes from the holder of a secret.
///
/// # Contract
///
/// The body is the raw bytes as received: verify before parsing, never a re-serialised value.
/// Comparisons take constant time; every key is tried with every candidate; a malformed candidate
/// is skipped.
///
/// # Errors
///
/// A [`VerifyError`]. Answer 401 with an empty body, and keep the reason for the log: it helps an
/// attacker.
///
/// # Example
///
/// ```
/// use http::HeaderMap;
/// use outbox_http::{SharedSecret, Verifier, VerifyErrorKind, XSignature};
///
/// let verifier = XSignature::with_secret(SharedSecret::new("correct horse battery staple")?);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-webhook-id", "7".parse().unwrap());
/// headers.insert("x-signature", "00".parse().unwrap());
/// let error = verifier.verify(&headers, b"{}").unwrap_err();
/// assert_eq!(error.kind(), VerifyErrorKind::NoMatch);
/// # Ok::<(), outbox_core::Error>(())
/// ```
pub trait Verifier: Send + Sync {
    /// Checks one delivery.
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> Result<Verified, VerifyError>;
}

/// A delivery that is what it claims to be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The name of the key that made the signature: which of several still verifies.
    pub key: Arc<str>,
    /// The delivery's id, to recognise duplicates by. Where [`id_is_signed`](Self::id_is_signed) is
    /// false, whoever saw one delivery can send it again under another id.
    pub id: Option<String>,
    /// Whether the signature covers the id.
    pub id_is_signed: bool,
    /// When it was signed, where the scheme says so.
    pub timestamp: Option<SystemTime>,
}

/// Why a delivery is refused. For logs; the sender gets no reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VerifyErrorKind {
    /// A header that the scheme needs is absent.
    MissingHeader,
    /// A header that must be there once is there several times.
    RepeatedHeader,
    /// A header is not what the scheme says: not ASCII, too long, no timestamp, a dot in the id of
    /// Standard Webhooks.
    MalformedHeader,
    /// Signed longer ago than is tolerated: a replay, or a clock that is wrong.
    TooOld,
    /// Signed further in the future than is tolerated.
    TooNew,
    /// More signatures than anybody needs.
    TooManySignatures,
    /// No key counts now.
    NoActiveKey,
    /// No signature fits the body: another secret, or changed bytes.
    NoMatch,
}

/// A delivery that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    kind: VerifyErrorKind,
    header: Option<&'static str>,
}

impl VerifyError {
    pub(crate) const fn new(kind: VerifyErrorKind) -> Self {
        Self { kind, header: None }
    }

    pub(crate) const fn header(kind: VerifyErrorKind, name: &'static str) -> Self {
        Self {
            kind,
            header: Some(name),
        }
    }

    /// Why.
    #[must_use]
    pub const fn kind(&self) -> VerifyErrorKind {
        self.kind
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.kind {
            VerifyErrorKind::MissingHeader => "a header is missing",
            VerifyErrorKind::RepeatedHeader => "a header is repeated",
            VerifyErrorKind::MalformedHeader => "a header is malformed",
            VerifyErrorKind::TooOld => "the timestamp is too old",
            VerifyErrorKind::TooNew => "the timestamp is too far in the future",
            VerifyErrorKind::TooManySignatures => "there are too many signatures",
            VerifyErrorKind::NoActiveKey => "no key counts now",
            VerifyErrorKind::NoMatch => "no signature matches",
        };
        match self.header {
            Some(header) => write!(f, "{reason}: {header}"),
            None => f.write_str(reason),
        }
    }
}

impl StdError for VerifyError {}

/// The header's value, which must be there exactly once, in visible ASCII.
pub(crate) fn one<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
    max: usize,
) -> Result<&'a str, VerifyError> {
    optional(headers, name, max)?.ok_or(VerifyError::header(VerifyErrorKind::MissingHeader, name))
}

/// The header's value, which may be absent but not repeated.
pub(crate) fn optional<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
    max: usize,
) -> Result<Option<&'a str>, VerifyError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(VerifyError::header(VerifyErrorKind::RepeatedHeader, name));
    }
    match value.to_str() {
        Ok(text) if !text.is_empty() && text.len() <= max => Ok(Some(text)),
        _ => Err(VerifyError::header(VerifyErrorKind::MalformedHeader, name)),
    }
}

/// Parses a timestamp and checks it against the clock.
pub(crate) fn fresh(
    text: &str,
    header: &'static str,
    clock: &WallClock,
    tolerance: Duration,
) -> Result<SystemTime, VerifyError> {
    let Some(at) = parse_timestamp(text) else {
        return Err(VerifyError::header(
            VerifyErrorKind::MalformedHeader,
            header,
        ));
    };
    let late = |kind| Err(VerifyError::header(kind, header));
    match clock.now().duration_since(at) {
        Ok(age) if age > tolerance => late(VerifyErrorKind::TooOld),
        Err(ahead) if ahead.duration() > tolerance => late(VerifyErrorKind::TooNew),
        _ => Ok(at),
    }
}
