//! Looking at a store's state, and deleting what is no longer needed.

use std::time::Duration;

use async_trait::async_trait;

use crate::Error;

/// A count that stops at a limit, so that it costs the same whatever the backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// The rows counted.
    pub value: u64,
    /// True where counting stopped there and more rows may exist.
    pub capped: bool,
}

impl Count {
    /// `counted` rows, of a count that stops at `limit`.
    #[must_use]
    pub const fn new(counted: u64, limit: u64) -> Self {
        if counted >= limit {
            Self {
                value: limit,
                capped: true,
            }
        } else {
            Self {
                value: counted,
                capped: false,
            }
        }
    }
}

/// The state of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Open rows: all that are neither published nor dead.
    pub pending: Count,
    /// Of these: under an unexpired lease.
    pub claimed: Count,
    /// Of these: could be claimed now.
    pub due: Count,
    /// Of these: wait for a held or disabled destination.
    pub parked: Count,
    /// How long the oldest due event has been due.
    pub oldest_due: Option<Duration>,
    /// Dead letters.
    pub dead: Count,
    /// Keys that wait for a dead head under the policy `Block`.
    pub blocked_keys: Count,
}

/// What to delete. The default deletes published rows after 30 days and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prune {
    /// Published rows this long after they were published, and records of discarded letters this long after
    /// that. Default: 30 days.
    pub published_after: Option<Duration>,
    /// Dead letters this long after they died. Default: never.
    pub dead_after: Option<Duration>,
    /// De-duplication keys this long after the enqueue, once their event is neither open nor dead.
    /// Default: 30 days.
    pub dedup_after: Option<Duration>,
    /// The most rows per table in one call, each table in its own short transaction. Default: 1,000.
    pub rows: u32,
}

impl Default for Prune {
    fn default() -> Self {
        let month = Duration::from_secs(30 * 24 * 60 * 60);
        Self {
            published_after: Some(month),
            dead_after: None,
            dedup_after: Some(month),
            rows: 1_000,
        }
    }
}

/// How many rows a prune deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Published rows. (Records of discarded letters are not counted.)
    pub published: u64,
    /// Dead letters.
    pub dead: u64,
    /// De-duplication keys.
    pub dedup: u64,
}

/// A store's state and upkeep.
///
/// # Contract
///
/// * No call touches a pending row.
/// * Each call is bounded: counts stop at the limit given, a prune deletes at most
///   [`Prune::rows`] per table. A prune that reached it should be called again.
///
/// # Errors
///
/// As [`OutboxStore`](crate::OutboxStore).
///
/// # Cancel safety
///
/// A dropped prune has deleted some of the batch, or none.
///
/// # Example
///
/// ```
/// # use outbox_core::*;
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let mut tx = store.begin();
/// store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("somewhere")).await?;
/// tx.commit();
/// let stats = store.stats(10_000).await?;
/// assert_eq!((stats.pending.value, stats.pending.capped), (1, false));
/// assert_eq!(store.prune(&Prune::default()).await?, Pruned::default());
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// The state now; each count stops at `count_limit`.
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error>;

    /// Deletes one batch of what is old enough.
    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error>;
}
