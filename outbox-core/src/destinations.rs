//! What a store knows about destinations: what holds them, and what a dead event does to its key.

use std::time::SystemTime;

use async_trait::async_trait;

use crate::Error;

/// What a dead event does to the later events of its destination and key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadHeadPolicy {
    /// They go on without it.
    #[default]
    Skip,
    /// They wait until it is replayed or discarded.
    Block,
}

impl DeadHeadPolicy {
    /// The stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Block => "block",
        }
    }

    /// The policy with this stored name; [`Skip`](Self::Skip) for names that are not known.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        if name == Self::Block.as_str() {
            Self::Block
        } else {
            Self::Skip
        }
    }
}

/// A key that waits for its dead letters under [`DeadHeadPolicy::Block`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedKey {
    /// The destination.
    pub destination: String,
    /// The ordering key.
    pub key: String,
    /// The number of the dead letter that blocked it.
    pub seq: i64,
    /// Since when.
    pub since: SystemTime,
}

impl BlockedKey {
    /// A key that the dead letter `seq` blocks.
    pub fn new(
        destination: impl Into<String>,
        key: impl Into<String>,
        seq: i64,
        since: SystemTime,
    ) -> Self {
        Self {
            destination: destination.into(),
            key: key.into(),
            seq,
            since,
        }
    }
}

/// A page of blocked keys, by destination and key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedKeyPage {
    /// Those after this destination and key. Default: from the first.
    pub after: Option<(String, String)>,
    /// The most of them. Default: 100.
    pub rows: u32,
}

impl Default for BlockedKeyPage {
    fn default() -> Self {
        Self {
            after: None,
            rows: 100,
        }
    }
}

impl BlockedKeyPage {
    /// The first `rows` after that one.
    #[must_use]
    pub fn after(last: &BlockedKey, rows: u32) -> Self {
        Self {
            after: Some((last.destination.clone(), last.key.clone())),
            rows,
        }
    }
}

/// A destination that is held or disabled, or has a policy of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestinationState {
    /// The destination.
    pub destination: String,
    /// What a dead event does to its key.
    pub dead_head_policy: DeadHeadPolicy,
    /// No claims before then, where it is held for a time and not disabled.
    pub held_until: Option<SystemTime>,
    /// True where no claims are made until an operator frees it.
    pub disabled: bool,
    /// Why it is held or disabled.
    pub reason: Option<String>,
}

impl DestinationState {
    /// A destination that nothing holds, with the default policy.
    pub fn new(destination: impl Into<String>) -> Self {
        Self {
            destination: destination.into(),
            dead_head_policy: DeadHeadPolicy::Skip,
            held_until: None,
            disabled: false,
            reason: None,
        }
    }
}

/// A page of destinations, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestinationPage {
    /// Those after this name. Default: from the first.
    pub after: Option<String>,
    /// The most of them. Default: 100.
    pub rows: u32,
}

impl Default for DestinationPage {
    fn default() -> Self {
        Self {
            after: None,
            rows: 100,
        }
    }
}

/// The destinations of a store. (They are held through
/// [`OutboxStore::hold`](crate::OutboxStore::hold).)
///
/// # Contract
///
/// * Under [`Block`](DeadHeadPolicy::Block), an event that is settled dead blocks its key in the
///   same transaction. The block ends when no dead letter of that destination and key is left: by
///   replay, discard or prune. A replayed event has its old `seq` and so heads the key.
/// * The policy counts at the moment of death: setting `Block` blocks no key for letters that are
///   dead already. Setting [`Skip`](DeadHeadPolicy::Skip) lifts the destination's blocks.
/// * Names are ordered by their bytes.
///
/// # Errors
///
/// As [`OutboxStore`](crate::OutboxStore).
///
/// # Cancel safety
///
/// A dropped call has made its change, or none.
///
/// # Example
///
/// ```
/// # use outbox_core::*;
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// store.set_dead_head_policy("ci", DeadHeadPolicy::Block).await?;
/// store.hold("ci", Hold::Disabled { reason: "moving".into() }).await?;
///
/// let states = store.destinations(&DestinationPage::default()).await?;
/// assert!(states[0].disabled);
/// assert_eq!(states[0].dead_head_policy, DeadHeadPolicy::Block);
/// assert!(store.blocked_keys(&BlockedKeyPage::default()).await?.is_empty());
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Destinations: Send + Sync {
    /// Sets what a dead event does to its key.
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error>;

    /// A page of the destinations that are held or disabled now, or whose policy is not the default.
    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error>;

    /// A page of the blocked keys.
    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error>;
}
