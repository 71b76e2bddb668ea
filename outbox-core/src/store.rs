//! The seam to a database: what the relay needs of a store.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Claim, ClaimRequest, Error, Hold, Lease, LeaseStatus, LeaseToken, Settlement};

/// A store that relays claim from: **claim → deliver → settle**.
///
/// # Contract
///
/// * A claim hands out committed events only, and no event to two claims while a lease on it is
///   valid, whatever the number of threads, processes and machines.
/// * A claim counts the attempt; [`Release`](crate::Outcome::Release) and
///   [`Defer`](crate::Outcome::Defer) refund it.
/// * Every other call proves the token of the claim. A stale holder changes nothing and is told so:
///   [`Lost`](LeaseStatus::Lost) where another token is on the row,
///   [`Unknown`](LeaseStatus::Unknown) where none is or the row is not open. An expired lease that
///   nobody took over may still settle.
/// * An expired lease of an event without a key that nobody took over may also be extended. That of an
///   event with a key is [`Lost`](LeaseStatus::Lost): another event of the key may be in flight by now.
///   That holds whatever a call had to wait for, and beside claims that are under way.
/// * Events of one destination and key are handed out in order of `seq`, one run at a time: a claim
///   takes consecutive open rows from the head, all of them due. While any open row of the key is
///   under a valid lease, or its head is not due, or the key is [blocked](crate::BlockedKey), or the
///   destination is held, nothing of the key is handed out. A filter stops a run at the first row
///   that it does not admit; a limit of rows or bytes cuts its tail. A row that commits late or is
///   replayed takes its place by `seq`.
/// * A claim is fair: fresh events, retried and delayed ones, keys, and the backlog of a destination
///   that was held each have a share of the rows, and what one leaves the others may use. None is
///   starved by any amount of the others.
/// * Claims go by state, never by a cursor over `seq`: an event may commit after later numbers did.
/// * The store's clock decides: durations go in, instants come out.
/// * Answers come in the order of the arguments.
/// * One connection is enough, and none is held between calls.
///
/// The suite behind the feature `conformance` checks all of it.
///
/// # Errors
///
/// [`Unavailable`](crate::ErrorKind::Unavailable) and [`Conflict`](crate::ErrorKind::Conflict) mean
/// "again later": nothing was changed, or the answer was lost and the change may have been made.
/// Content is no ground for an error: text is cleaned and capped by the store.
///
/// # Cancel safety
///
/// A relay drops a call that has not answered within its
/// [`store_timeout`](crate::RelayBuilder::store_timeout). A dropped call loses no event and harms no
/// pooled connection. What it did is unknown: a claim may have taken leases
/// ([`release_claim`](Self::release_claim) gives them back at once, expiry does later), a settle may
/// have been made.
///
/// # Example
///
/// ```
/// # use std::{num::NonZeroU32, time::Duration};
/// # use outbox_core::*;
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let mut tx = store.begin();
/// store.enqueue(&mut tx, NewEvent::bytes("T", "x").to("somewhere")).await?;
/// tx.commit();
///
/// let claim = store.claim(&ClaimRequest::new(NonZeroU32::MIN, Duration::from_secs(30))).await?;
/// let settled = store.settle(&[Settlement::new(claim.events[0].lease, Outcome::Published)]).await?;
/// assert_eq!(settled, [LeaseStatus::Ours]);
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OutboxStore: Send + Sync {
    /// Takes due events under a lease.
    ///
    /// At least one due event comes whatever its size. A short or empty claim does not mean that
    /// nothing is left.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error>;

    /// Ends claims: each event is published, retried, deferred, released or dead.
    ///
    /// All of one destination and key is changed in one transaction. The same settle again, after
    /// an ambiguous error, changes nothing more and answers [`Unknown`](LeaseStatus::Unknown).
    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error>;

    /// Lets leases run until `by` from now, earlier or later than before. One that has ended is
    /// extended only where its event has no key.
    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error>;

    /// Gives events back undelivered, at once, the attempt refunded: as a settle with
    /// [`Release`](crate::Outcome::Release).
    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error>;

    /// Gives back what a claim with this token took, where its answer was lost. Returns how many.
    ///
    /// Best effort at bounded cost: what it misses, lease expiry returns (with the attempt counted).
    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error>;

    /// Holds back, disables or frees a destination. Its events stay pending and uncharged; those
    /// that are claimed already may still be settled.
    ///
    /// A timed hold changes nothing about a disabled destination. The states are listed by
    /// [`Destinations`](crate::Destinations).
    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error>;
}
