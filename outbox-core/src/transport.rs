//! The seam to the outside: what delivers one event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::{DeliveryError, Event};

/// Delivers one event, once.
///
/// # Contract
///
/// * `Ok` means that the receiver has it. When in doubt, fail: the relay tries again, and receivers
///   de-duplicate by id.
/// * Before the first byte that a receiver may see, call
///   [`advance(Phase::Sending)`](Delivery::advance); at the answer, `advance(Phase::Answered)`. A
///   transport that never does counts as *sending*.
/// * Don't retry inside: the relay's retries are durable and counted.
/// * It may be called again before an earlier call has ended.
///
/// # Errors
///
/// A [`DeliveryError`] says whether to try again. A panic is caught and counts as a failed attempt.
///
/// # Cancel safety
///
/// The relay drops the future at the time-out or at an abort; it then reads the phase to tell
/// whether the receiver may have got the event.
///
/// # Example
///
/// ```
/// use outbox_core::{async_trait, Delivery, DeliveryError, Phase, Receipt, Transport};
///
/// struct Print;
///
/// #[async_trait]
/// impl Transport for Print {
///     async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
///         delivery.advance(Phase::Sending);
///         println!("{} {}", delivery.event().event_type, delivery.event().id);
///         Ok(Receipt::new())
///     }
/// }
/// ```
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Transport: Send + Sync {
    /// Delivers the event.
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError>;
}

/// How far an attempt has come: what decides whether the receiver may have seen the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing was sent (name lookup, connecting, waiting for a slot).
    Waiting,
    /// Bytes may have reached the receiver.
    Sending,
    /// The receiver has answered.
    Answered,
}

const UNSET: u8 = 0;

/// One attempt to deliver an event. Cheap to clone; the clones share the phase.
#[derive(Debug, Clone)]
pub struct Delivery {
    event: Arc<Event>,
    timeout: Duration,
    phase: Arc<AtomicU8>,
}

impl Delivery {
    /// An attempt to deliver `event` within `timeout`.
    #[must_use]
    pub fn new(event: Arc<Event>, timeout: Duration) -> Self {
        Self {
            event,
            timeout,
            phase: Arc::new(AtomicU8::new(UNSET)),
        }
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The event, shared.
    #[must_use]
    pub const fn shared_event(&self) -> &Arc<Event> {
        &self.event
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.event.attempts.max(1)
    }

    /// The time after which the relay drops the attempt, from its start.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Records how far the attempt has come. A phase never goes back (but see
    /// [`hand_over`](Self::hand_over)).
    pub fn advance(&self, phase: Phase) {
        let value = match phase {
            Phase::Waiting => 1,
            Phase::Sending => 2,
            Phase::Answered => 3,
        };
        self.phase.fetch_max(value, Ordering::AcqRel);
    }

    /// Gives an attempt that was [waiting](Phase::Waiting) to code that may never say how far it
    /// comes: from here it counts as sending until it is told otherwise. For what stands in front
    /// of a transport and waits (for a slot, for readiness) before it calls it.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use outbox_core::{Delivery, Event, EventId, Phase};
    /// # let event = Arc::new(Event::new(EventId::new(), 1, "T", "d", ""));
    /// let delivery = Delivery::new(event, Duration::from_secs(1));
    /// delivery.advance(Phase::Waiting); // for a slot
    /// delivery.hand_over();
    /// assert_eq!(delivery.phase(), Phase::Sending);
    /// delivery.advance(Phase::Waiting); // the transport connects
    /// assert_eq!(delivery.phase(), Phase::Waiting);
    /// ```
    pub fn hand_over(&self) {
        let _ = self
            .phase
            .compare_exchange(1, UNSET, Ordering::AcqRel, Ordering::Acquire);
    }

    /// How far the attempt has come; [`Phase::Sending`] where the transport never said.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            1 => Phase::Waiting,
            3 => Phase::Answered,
            _ => Phase::Sending,
        }
    }
}

/// What a successful delivery has to tell. For observers; it decides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The receiver's answer in short (`200 OK`).
    pub detail: Option<String>,
}

impl Receipt {
    /// Delivered, no more to tell.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Delivered, with the receiver's answer in short.
    #[must_use]
    pub fn with_detail(detail: impl Into<String>) -> Self {
        Self {
            detail: Some(detail.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventId;

    #[test]
    fn phase_counts_as_sending_until_told_and_never_goes_back() {
        let event = Arc::new(Event::new(EventId::new(), 1, "T", "d", ""));
        let delivery = Delivery::new(event, Duration::from_secs(1));
        assert_eq!(delivery.phase(), Phase::Sending);
        let clone = delivery.clone();
        clone.advance(Phase::Waiting);
        assert_eq!(delivery.phase(), Phase::Waiting);
        clone.advance(Phase::Answered);
        clone.advance(Phase::Sending);
        assert_eq!(delivery.phase(), Phase::Answered);
    }
}
