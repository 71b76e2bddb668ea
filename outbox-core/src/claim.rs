//! What a relay asks for, and what it gets.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::{Event, LeaseToken};

/// A request for due events.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClaimRequest {
    /// The proof of this claim; new for each.
    pub token: LeaseToken,
    /// How long the events are this claimer's.
    pub lease: Duration,
    /// The most events. A store may give fewer, even none, while more are due.
    pub rows: NonZeroU32,
    /// The most payload bytes; the first event comes whatever its size. Default: 16 MiB.
    pub bytes: u64,
    /// Only events of these types. Default: all.
    pub event_types: Option<Vec<String>>,
    /// Only events for, or not for, some destinations. Default: all.
    pub destinations: DestinationFilter,
}

impl ClaimRequest {
    /// A request for up to `rows` events, leased for `lease`, with a new token.
    #[must_use]
    pub fn new(rows: NonZeroU32, lease: Duration) -> Self {
        Self {
            token: LeaseToken::new(),
            lease,
            rows,
            bytes: 16 << 20,
            event_types: None,
            destinations: DestinationFilter::All,
        }
    }
}

/// Which destinations a claim may take from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DestinationFilter {
    /// Every destination.
    #[default]
    All,
    /// These alone.
    Only(Vec<String>),
    /// All but these: the relay leaves out destinations that have no free slot.
    Except(Vec<String>),
}

impl DestinationFilter {
    /// Whether an event for `destination` may be taken.
    #[must_use]
    pub fn admits(&self, destination: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(list) => list.iter().any(|d| d == destination),
            Self::Except(list) => list.iter().all(|d| d != destination),
        }
    }
}

/// One event's share of a claim: what a settle, an extension or a release has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Lease {
    /// The event's number.
    pub seq: i64,
    /// The claim's token.
    pub token: LeaseToken,
}

impl Lease {
    /// The lease on event `seq` by the claim with `token`.
    #[must_use]
    pub const fn new(seq: i64, token: LeaseToken) -> Self {
        Self { seq, token }
    }
}

/// An event with its lease.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claimed {
    /// The event. `attempts` counts this claim already.
    pub event: Arc<Event>,
    /// The proof to settle it with.
    pub lease: Lease,
    /// True where `expires_at` has passed by the store's clock: dead-letter it, don't deliver it. What
    /// is left of it otherwise, the relay takes from `created_at` and [`age`](Self::age).
    pub expired: bool,
    /// How long ago it was enqueued (or replayed), by the store's clock.
    pub age: Duration,
    /// True where its destination's policy for dead heads is *block*: if this event dies, the rest
    /// of its run goes back undelivered. False: the key goes on.
    pub death_blocks: bool,
}

impl Claimed {
    /// An event under the claim with `token`.
    #[must_use]
    pub fn new(event: Event, token: LeaseToken) -> Self {
        let lease = Lease::new(event.seq, token);
        Self {
            event: Arc::new(event),
            lease,
            expired: false,
            age: Duration::ZERO,
            death_blocks: false,
        }
    }
}

/// What a claim brought.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Claim {
    /// The events, by ascending `seq`. Those of one destination and key are a run: consecutive, in
    /// order, with no other open event of the key before or between them.
    pub events: Vec<Claimed>,
    /// Rows that could not be read; the relay dead-letters each.
    pub undecodable: Vec<Undecodable>,
    /// In how much time the next delayed event falls due, where the store knows it. An idle relay
    /// sleeps no longer. Expiring leases are left to the poll interval. Zero with no events: the store
    /// has not looked at everything, and the next claim goes on.
    pub next_due: Option<Duration>,
}

/// A claimed row whose content makes no event.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Undecodable {
    /// The proof to settle it with.
    pub lease: Lease,
    /// What is wrong with it.
    pub problem: String,
}

impl Undecodable {
    /// The row under this lease, and what is wrong with it.
    #[must_use]
    pub fn new(lease: Lease, problem: impl Into<String>) -> Self {
        Self {
            lease,
            problem: problem.into(),
        }
    }
}
