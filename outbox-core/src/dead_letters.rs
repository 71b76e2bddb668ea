//! Events that will not be delivered, until an operator replays or discards them.

use std::fmt;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::{Error, Event, EventId};

/// Why an event died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeathReason {
    /// Its attempts are used up.
    AttemptsExhausted,
    /// It is older than the retry policy tries for.
    TooOld,
    /// Its `expires_at` passed.
    Expired,
    /// The receiver refused it for good.
    Rejected,
    /// The receiver says that the destination is gone (HTTP 410).
    Gone,
    /// No transport can send it there.
    Unroutable,
    /// The stored row makes no event.
    Undecodable,
    /// Recorded by a newer version of the library.
    Other,
}

impl DeathReason {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::AttemptsExhausted,
        Self::TooOld,
        Self::Expired,
        Self::Rejected,
        Self::Gone,
        Self::Unroutable,
        Self::Undecodable,
        Self::Other,
    ];

    /// The stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::TooOld => "too_old",
            Self::Expired => "expired",
            Self::Rejected => "rejected",
            Self::Gone => "gone",
            Self::Unroutable => "unroutable",
            Self::Undecodable => "undecodable",
            Self::Other => "other",
        }
    }

    /// The reason with this stored name; [`Other`](Self::Other) for names that are not known.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == name)
            .unwrap_or(Self::Other)
    }
}

impl fmt::Display for DeathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A dead event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The event, with its attempts and last error.
    pub event: Event,
    /// Why it died.
    pub reason: DeathReason,
    /// When it died.
    pub dead_at: SystemTime,
}

impl DeadLetter {
    /// A dead event.
    #[must_use]
    pub const fn new(event: Event, reason: DeathReason, dead_at: SystemTime) -> Self {
        Self {
            event,
            reason,
            dead_at,
        }
    }
}

/// Which dead letters: all conditions hold. The default matches every one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterFilter {
    /// These numbers alone.
    pub seqs: Option<Vec<i64>>,
    /// These events alone.
    pub ids: Option<Vec<EventId>>,
    /// This type alone.
    pub event_type: Option<String>,
    /// This destination alone.
    pub destination: Option<String>,
    /// This ordering key alone.
    pub key: Option<String>,
    /// This reason alone.
    pub reason: Option<DeathReason>,
    /// Dead for at least this long.
    pub dead_for: Option<Duration>,
}

impl DeadLetterFilter {
    /// Every dead letter.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// One dead letter, by number.
    #[must_use]
    pub fn seq(seq: i64) -> Self {
        Self {
            seqs: Some(vec![seq]),
            ..Self::default()
        }
    }

    /// The dead letters of one event, by id.
    #[must_use]
    pub fn id(id: EventId) -> Self {
        Self {
            ids: Some(vec![id]),
            ..Self::default()
        }
    }

    /// Those for one destination.
    #[must_use]
    pub fn destination(destination: impl Into<String>) -> Self {
        Self {
            destination: Some(destination.into()),
            ..Self::default()
        }
    }
}

/// A page of a list, by key: rows after the last one seen, so that rows that come or go while
/// somebody pages neither repeat nor hide others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Rows with a greater `seq` than this. Default: from the first.
    pub after: Option<i64>,
    /// The most rows. Default: 100.
    pub rows: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            after: None,
            rows: 100,
        }
    }
}

impl Page {
    /// The first `rows` rows after `seq`.
    #[must_use]
    pub const fn after(seq: i64, rows: u32) -> Self {
        Self {
            after: Some(seq),
            rows,
        }
    }
}

/// Puts dead letters back among the pending events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// Which.
    pub filter: DeadLetterFilter,
    /// The most in this call, by ascending `seq`. Default: 1,000.
    pub rows: u32,
    /// The time between two of them becoming due, to spare the receiver. Default: none.
    pub pace: Duration,
    /// A new time to live from now; the old one is cleared either way. Default: none.
    pub expires_in: Option<Duration>,
}

impl Replay {
    /// Replays what `filter` matches, at once.
    #[must_use]
    pub const fn new(filter: DeadLetterFilter) -> Self {
        Self {
            filter,
            rows: 1_000,
            pace: Duration::ZERO,
            expires_in: None,
        }
    }
}

/// The dead letters of a store.
///
/// # Contract
///
/// * A replay keeps id, `seq`, destination and limits, sets attempts to 0, counts the replay,
///   restarts the age, clears `expires_at` unless given anew, and ignores de-duplication keys.
/// * A letter whose id is that of an open event again (enqueued anew by the producer) stays dead.
/// * Two operators who replay the same letters at once replay each once.
/// * A replayed event that fails again is a dead letter again.
/// * A letter is put back or discarded only where its row still is a dead letter.
///
/// # Errors
///
/// As [`OutboxStore`](crate::OutboxStore).
///
/// # Cancel safety
///
/// A dropped call has changed all that it matched, or nothing.
///
/// # Example
///
/// ```
/// # use std::num::NonZeroU32; use std::time::Duration;
/// # use outbox_core::*;
/// # futures::executor::block_on(async {
/// # let store = MemoryStore::new();
/// # let mut tx = store.begin();
/// # store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("somewhere")).await?;
/// # tx.commit();
/// # let claim = store.claim(&ClaimRequest::new(NonZeroU32::MIN, Duration::from_secs(30))).await?;
/// # let dead = Outcome::Dead { reason: DeathReason::Gone, error: "410".into() };
/// # store.settle(&[Settlement::new(claim.events[0].lease, dead)]).await?;
/// for letter in store.list(&DeadLetterFilter::all(), &Page::default()).await? {
///     println!("{} {}: {:?}", letter.event.id, letter.reason, letter.event.last_error);
/// }
/// assert_eq!(store.replay(&Replay::new(DeadLetterFilter::destination("somewhere"))).await?, 1);
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// A page of dead letters, by ascending `seq`.
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error>;

    /// One dead letter, by number.
    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error>;

    /// Puts dead letters back; returns how many. Zero means that no more can be put back now.
    async fn replay(&self, replay: &Replay) -> Result<u64, Error>;

    /// Deletes up to `rows` dead letters for good and records `reason` with each; returns how many.
    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error>;
}
