//! Leased locks: one of many processes does a job.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Error, LeaseStatus, LeaseToken, MAX_NAME};

/// A request for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockRequest {
    /// The lock's name: 1 to [`MAX_NAME`] bytes without NUL, compared byte for byte.
    pub name: String,
    /// The proof of holding it; new for each attempt to take it.
    pub token: LeaseToken,
    /// How long it is the holder's, unless extended: the time after which a crashed holder's lock
    /// is free. Default: one minute.
    pub lease: Duration,
}

impl LockRequest {
    /// A request for the lock `name`, with a new token.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            token: LeaseToken::new(),
            lease: Duration::from_secs(60),
        }
    }

    /// The same request with another lease.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }
}

/// What became of a request for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockStatus {
    /// It is the caller's, under its token.
    Acquired,
    /// It is closed: held, or cooling down.
    Held {
        /// Until the lease or the cool-down ends, unless it is extended or released before.
        retry_after: Duration,
    },
}

/// Cluster-wide single-flight locks, leased.
///
/// A lease limits how long a crash blocks others. It does not stop a holder that sleeps over its
/// lease from waking up beside the next one: do work that bears it, and extend in time.
///
/// # Contract
///
/// * At most one token holds a lock while its lease is valid, whatever the number of processes.
/// * Nobody waits: a call answers at once.
/// * Asking again with the token that holds the lock renews the lease and is
///   [`Acquired`](LockStatus::Acquired), so that a call can be repeated after an ambiguous error.
/// * `extend_lock` and `unlock` prove the token. A stale holder changes nothing and learns that it has
///   [`Lost`](LeaseStatus::Lost) the lock; [`Unknown`](LeaseStatus::Unknown) means that nobody
///   holds it (released before, say). An expired lease that nobody took over may still be extended
///   or released.
/// * The store's clock decides. One connection is enough, and none is held between calls.
///
/// # Errors
///
/// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) where the name is empty or too long; else as
/// [`OutboxStore`](crate::OutboxStore).
///
/// # Cancel safety
///
/// What a dropped call did is unknown: a dropped `try_lock` may hold the lock until its lease
/// ends, or until an `unlock` with its token.
///
/// # Example
///
/// ```
/// # use std::time::Duration;
/// # use outbox_core::*;
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let mine = LockRequest::new("nightly report");
/// assert_eq!(store.try_lock(&mine).await?, LockStatus::Acquired);
/// let theirs = LockRequest::new("nightly report");
/// assert!(matches!(store.try_lock(&theirs).await?, LockStatus::Held { .. }));
/// store.unlock(&mine.name, mine.token, Duration::ZERO).await?;
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Locks: Send + Sync {
    /// Takes the lock, or says how long it is closed.
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error>;

    /// Lets the lease run until `by` from now.
    async fn extend_lock(
        &self,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error>;

    /// Gives the lock back. It stays closed to everybody for `cooldown` more: a job that runs once
    /// per tick of a clock sets somewhat less than the time to the next tick, so that a process
    /// whose clock is late does not run the tick a second time. Zero opens it at once.
    async fn unlock(
        &self,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error>;
}

/// Refuses names that stores can't keep.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > MAX_NAME {
        let problem = format!("has {} bytes; 1 to {MAX_NAME} are allowed", name.len());
        return Err(Error::invalid_config("name", problem));
    }
    if name.contains('\0') {
        return Err(Error::invalid_config("name", "holds a NUL character"));
    }
    Ok(())
}
