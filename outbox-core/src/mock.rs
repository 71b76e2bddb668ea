//! Events and claims for unit tests with the `Mock…` types.
//!
//! ```
//! use outbox_core::mock::{claimed, event};
//! use outbox_core::{MockOutboxStore, OutboxStore};
//! # use std::{num::NonZeroU32, time::Duration};
//! # use outbox_core::ClaimRequest;
//!
//! let mut store = MockOutboxStore::new();
//! store.expect_claim().times(1).returning(|_| Ok(claimed([event(), event()])));
//!
//! # let request = ClaimRequest::new(NonZeroU32::MIN, Duration::from_secs(30));
//! # futures::executor::block_on(async {
//! let claim = store.claim(&request).await?;
//! assert_eq!(claim.events[0].event.attempts, 1);
//! # Ok::<(), outbox_core::Error>(()) }).unwrap();
//! ```

use std::sync::atomic::{AtomicI64, Ordering};

use crate::{Claim, Claimed, Event, EventId, LeaseToken};

/// An event with a number of its own, of type `Tested` for the destination `tests`, with the
/// payload `{}`. Its fields can be set.
#[must_use]
pub fn event() -> Event {
    static SEQ: AtomicI64 = AtomicI64::new(1);
    let seq = SEQ.fetch_add(1, Ordering::Relaxed);
    Event::new(EventId::new(), seq, "Tested", "tests", "{}")
}

/// A claim of these events, under a new token, each with this attempt counted.
pub fn claimed(events: impl IntoIterator<Item = Event>) -> Claim {
    let token = LeaseToken::new();
    let count = |mut event: Event| {
        event.attempts = event.attempts.saturating_add(1);
        Claimed::new(event, token)
    };
    Claim {
        events: events.into_iter().map(count).collect(),
        ..Claim::default()
    }
}
