//! The receiving half: doing a request's work once, however often it arrives.
//!
//! Two seams. [`IdempotencyKeys`] guards a request from outside its transaction and keeps its
//! answer, as the `Idempotency-Key` draft of the IETF has it
//! (`draft-ietf-httpapi-idempotency-key-header`). [`Inbox`] records a message inside the
//! transaction that holds its effects, so that both commit or neither does.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::limits::MAX_KEY;
use crate::text::Bytes as Length;
use crate::{Error, LeaseStatus, LeaseToken};

/// Whose request, and which: the pair that a store looks up.
///
/// Compared byte for byte; stores use binary columns or collations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    scope: String,
    key: String,
}

impl IdempotencyKey {
    /// The key `key` of `scope`: a tenant, a route, a webhook source. Two scopes share no keys.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where the key is empty, or either part
    /// holds NUL or has more than [`MAX_KEY`] bytes.
    pub fn new(scope: impl Into<String>, key: impl Into<String>) -> Result<Self, Error> {
        let (scope, key) = (scope.into(), key.into());
        if key.is_empty() {
            return Err(Error::invalid_config("key", "is empty; it is required"));
        }
        for (field, value) in [("scope", &scope), ("key", &key)] {
            if value.len() > MAX_KEY {
                let problem = format!("has {} bytes; at most {MAX_KEY} are allowed", value.len());
                return Err(Error::invalid_config(field, problem));
            }
            if value.contains('\0') {
                return Err(Error::invalid_config(field, "holds a NUL character"));
            }
        }
        Ok(Self { scope, key })
    }

    /// Whose; may be empty.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Which.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// What tells two requests apart: a SHA-256 over all that matters about them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint with these 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A request that wants to start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeginKey {
    /// Its key.
    pub key: IdempotencyKey,
    /// What it asks for.
    pub fingerprint: Fingerprint,
    /// The proof of this run; new for each request.
    pub token: LeaseToken,
    /// How long the key is this run's, unless extended: the time after which a crashed handler's
    /// key is free. Default: one minute.
    pub lease: Duration,
    /// How long the key and its fingerprint are kept, from now; completing starts it anew. More
    /// than the time for which the sender retries and replays. Default: 7 days.
    pub retention: Duration,
}

impl BeginKey {
    /// A request under `key`, with a new token.
    #[must_use]
    pub fn new(key: IdempotencyKey, fingerprint: Fingerprint) -> Self {
        Self {
            key,
            fingerprint,
            token: LeaseToken::new(),
            lease: Duration::from_secs(60),
            retention: DEFAULT_RETENTION,
        }
    }
}

/// What the key says about a request that wants to start. `Debug` doesn't show the answer.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Begun {
    /// The key is the caller's, under its token: run the handler, then complete or abandon.
    Started,
    /// Another run holds the key.
    Busy {
        /// Until its lease ends, unless it is extended or completed before.
        retry_after: Duration,
    },
    /// The key belongs to another request.
    Mismatch,
    /// The request was answered before, with these bytes.
    Done {
        /// As given to [`IdempotencyKeys::complete_key`].
        answer: Bytes,
    },
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => f.write_str("Started"),
            Self::Busy { retry_after } => f
                .debug_struct("Busy")
                .field("retry_after", retry_after)
                .finish(),
            Self::Mismatch => f.write_str("Mismatch"),
            Self::Done { answer } => f
                .debug_struct("Done")
                .field("answer", &Length(answer.len()))
                .finish(),
        }
    }
}

/// The end of a run. `Debug` doesn't show the answer.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompleteKey {
    /// Its key.
    pub key: IdempotencyKey,
    /// The token that it began with.
    pub token: LeaseToken,
    /// What later requests are answered with. Opaque to the store; may be empty.
    pub answer: Bytes,
    /// How long the answer is kept, from now. Default: 7 days.
    pub retention: Duration,
}

impl fmt::Debug for CompleteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompleteKey")
            .field("key", &self.key)
            .field("token", &self.token)
            .field("answer", &Length(self.answer.len()))
            .field("retention", &self.retention)
            .finish()
    }
}

impl CompleteKey {
    /// Completes the run of `begun` with `answer`, with the same retention.
    #[must_use]
    pub fn new(begun: &BeginKey, answer: impl Into<Bytes>) -> Self {
        Self {
            key: begun.key.clone(),
            token: begun.token,
            answer: answer.into(),
            retention: begun.retention,
        }
    }
}

/// Longer than a sender that follows the Standard Webhooks schedule retries (75 hours), with some
/// days for replays by hand.
const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Idempotency keys with their answers: **begin → run → complete or abandon**.
///
/// # Contract
///
/// A key is *unknown*, *in flight* (a token, a lease, a fingerprint) or *done* (an answer, a
/// fingerprint). [`begin_key`](Self::begin_key) looks at it and changes it in one atomic step, whatever the
/// number of processes:
///
/// | the key is | same fingerprint | other fingerprint |
/// |---|---|---|
/// | unknown, or its retention has passed | in flight, `Started` | in flight, `Started` |
/// | in flight under an unexpired lease | `Busy` | `Mismatch` |
/// | in flight under the caller's own token (a repeat) | lease renewed, `Started` | `Mismatch` |
/// | in flight, lease expired | in flight under the new token, `Started` | `Mismatch` |
/// | done | `Done` | `Mismatch` |
///
/// * Of any number of concurrent requests with an unknown key, one is started.
/// * `complete_key`, `abandon_key` and `extend_key` prove the token. A stale holder changes nothing and learns
///   that it has [`Lost`](LeaseStatus::Lost) the key; [`Unknown`](LeaseStatus::Unknown) means that
///   there is no such key. An expired lease that nobody took over may still complete or extend.
/// * Completing again with the same token is [`Ours`](LeaseStatus::Ours) and may replace the
///   answer; abandoning or extending a done key is `Unknown` and changes nothing.
/// * The store's clock decides. One connection is enough, and none is held between calls.
/// * Keys are apart from the ids of an [`Inbox`] in the same store.
///
/// # Errors
///
/// As [`OutboxStore`](crate::OutboxStore).
///
/// # Cancel safety
///
/// What a dropped call did is unknown. A dropped `begin_key` may have taken the key:
/// [`abandon_key`](Self::abandon_key) frees it at once, the end of its lease does later.
///
/// # Example
///
/// ```
/// # use outbox_core::*;
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let key = IdempotencyKey::new("POST /repos", "8e03978e")?;
/// let request = BeginKey::new(key, Fingerprint::from_bytes([7; 32]));
/// assert_eq!(store.begin_key(&request).await?, Begun::Started);
/// // … the work …
/// store.complete_key(&CompleteKey::new(&request, "created")).await?;
///
/// let mut again = request.clone();
/// again.token = LeaseToken::new();
/// assert_eq!(store.begin_key(&again).await?, Begun::Done { answer: "created".into() });
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IdempotencyKeys: Send + Sync {
    /// Starts a run, or says why not.
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error>;

    /// Keeps the answer and ends the run.
    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error>;

    /// Forgets the key and its fingerprint: the run had no effect and may be made again.
    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error>;

    /// Lets the lease run until `by` from now.
    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error>;

    /// Deletes up to `rows` keys, and as many inbox ids, whose retention has passed, in-flight keys
    /// under an unexpired lease excepted; returns how many in all. `0` means that none is left.
    async fn prune_keys(&self, rows: u32) -> Result<u64, Error>;
}

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InboxMessage {
    /// Its source (the scope) and id.
    pub key: IdempotencyKey,
    /// What it says, to notice an id that comes back with another content. Default: not looked at.
    pub fingerprint: Option<Fingerprint>,
    /// How long the id is kept, from now. More than the time for which the sender retries and
    /// replays. Default: 7 days.
    pub retention: Duration,
}

impl InboxMessage {
    /// The message with this id.
    #[must_use]
    pub const fn new(key: IdempotencyKey) -> Self {
        Self {
            key,
            fingerprint: None,
            retention: DEFAULT_RETENTION,
        }
    }

    /// The message `id` from `source`.
    ///
    /// # Errors
    ///
    /// As [`IdempotencyKey::new`].
    pub fn from_source(source: impl Into<String>, id: impl Into<String>) -> Result<Self, Error> {
        IdempotencyKey::new(source, id).map(Self::new)
    }

    /// The same message with its fingerprint.
    #[must_use]
    pub const fn with_fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }
}

/// Whether a message is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Accepted {
    /// It is: make its effects in this transaction.
    First,
    /// It was accepted before: make no effects, answer as if.
    Duplicate,
    /// Its id was accepted with another fingerprint. Never the answer where either has none.
    Mismatch,
}

/// Records messages through the caller's connection or open transaction `C`: the id and the effects
/// commit together, so that each message has its effects **once**.
///
/// # Contract
///
/// * The id commits and rolls back with the caller's transaction; nothing else is opened.
/// * While another open transaction holds the id, the call waits for its end or fails with
///   [`Conflict`](crate::ErrorKind::Conflict); it never answers
///   [`Duplicate`](Accepted::Duplicate) for an id that may yet roll back.
/// * An id whose retention has passed is new.
///
/// # Errors
///
/// [`Conflict`](crate::ErrorKind::Conflict): roll back and let the sender try again; else as
/// [`OutboxStore`](crate::OutboxStore).
///
/// # Cancel safety
///
/// A dropped call leaves the caller's transaction as the driver leaves it: roll it back.
///
/// # Example
///
/// ```
/// # use outbox_core::*;
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let message = InboxMessage::from_source("forge", "msg_2Kc1")?;
/// for expected in [Accepted::First, Accepted::Duplicate] {
///     let mut tx = store.begin();
///     let accepted = store.accept(&mut tx, &message).await?;
///     if accepted == Accepted::First { /* the effects, in `tx` */ }
///     tx.commit();
///     assert_eq!(accepted, expected);
/// }
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[async_trait]
pub trait Inbox<C: ?Sized>: Send + Sync {
    /// Accepts a message, once.
    async fn accept(&self, conn: &mut C, message: &InboxMessage) -> Result<Accepted, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_checked_where_it_is_made() {
        let refused = |scope: &str, key: &str| IdempotencyKey::new(scope, key).unwrap_err();
        assert_eq!(
            refused("", "").to_string(),
            "setting `key` is empty; it is required"
        );
        assert_eq!(
            refused(&"s".repeat(256), "k").to_string(),
            "setting `scope` has 256 bytes; at most 255 are allowed"
        );
        assert!(refused("", "a\0b").to_string().contains("NUL"));
        let key = IdempotencyKey::new("", "k").unwrap();
        assert_eq!((key.scope(), key.key()), ("", "k"));
    }

    #[test]
    fn debug_shows_no_answer() {
        let key = IdempotencyKey::new("scope", "key").unwrap();
        let begun = BeginKey::new(key, Fingerprint::from_bytes([0; 32]));
        let done = Begun::Done {
            answer: "hunter2".into(),
        };
        let shown = format!("{done:?} {:?}", CompleteKey::new(&begun, "hunter2"));
        assert!(shown.contains("7 bytes"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
