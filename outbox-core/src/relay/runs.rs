//! Events whose leases this relay holds, and runs of them: one destination, one key, in order.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::settings::later;
use crate::Claimed;

/// A claimed event.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) claimed: Claimed,
    /// A moment before the claim was sent: its age counts from here.
    pub(super) at: Instant,
    /// The lease runs from here at least: a moment before the claim (or extension) was sent.
    pub(super) since: Instant,
    /// When its own deadline (`expires_at`) passes, if it has one: by the store's clock as of the
    /// claim, and from its answer on by the monotonic one. The machine's wall clock has no say.
    expires: Option<Instant>,
    /// Somebody else has it by now.
    pub(super) lost: bool,
}

impl Held {
    /// What a claim that was sent at `sent` has brought now.
    pub(super) fn new(claimed: Claimed, sent: Instant, now: Instant) -> Self {
        let event = &claimed.event;
        let expires = event.expires_at.map(|at| {
            let whole = at.duration_since(event.created_at).unwrap_or_default();
            later(now, whole.saturating_sub(claimed.age))
        });
        Self {
            claimed,
            at: sent,
            since: sent,
            expires,
            lost: false,
        }
    }

    /// Whether its deadline has passed: it must not be delivered any more.
    pub(super) fn expired(&self, now: Instant) -> bool {
        self.claimed.expired || self.expires.is_some_and(|at| at <= now)
    }

    /// How long ago it was enqueued or replayed.
    pub(super) fn age(&self, now: Instant) -> Duration {
        let held = now.saturating_duration_since(self.at);
        self.claimed.age.saturating_add(held)
    }

    /// Of the payload and the headers.
    pub(super) fn bytes(&self) -> u64 {
        self.claimed.event.payload.len() as u64 + header_bytes(&self.claimed)
    }
}

pub(super) fn header_bytes(claimed: &Claimed) -> u64 {
    let headers = claimed.event.headers.iter();
    let bytes = headers.map(|(name, value)| name.len() + value.len());
    bytes.sum::<usize>() as u64
}

/// Events that are delivered one after the other, in one slot. Those without a key are alone.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) head: Held,
    pub(super) tail: VecDeque<Held>,
}

impl Run {
    pub(super) fn of(head: Held) -> Self {
        Self {
            head,
            tail: VecDeque::new(),
        }
    }

    /// Whether `claimed` goes on from this run's last event.
    pub(super) fn takes(&self, claimed: &Claimed) -> bool {
        let head = &self.head.claimed.event;
        claimed.event.key.is_some()
            && head.key == claimed.event.key
            && head.destination == claimed.event.destination
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Held> {
        std::iter::once(&self.head).chain(&self.tail)
    }

    pub(super) fn held_mut(&mut self) -> impl Iterator<Item = &mut Held> {
        std::iter::once(&mut self.head).chain(&mut self.tail)
    }

    pub(super) fn into_held(self) -> impl Iterator<Item = Held> {
        std::iter::once(self.head).chain(self.tail)
    }

    pub(super) fn len(&self) -> usize {
        1 + self.tail.len()
    }
}
