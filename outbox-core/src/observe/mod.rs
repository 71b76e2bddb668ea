//! One hook that sees every transition, and what stands on it.

mod alerts;
mod destination;
mod fan_out;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod recording;
mod traced;
mod traceparent;

use std::sync::Arc;
use std::time::Duration;

pub use alerts::{Alert, Alerts};
pub use destination::shown_destination;
pub use fan_out::FanOut;
pub use log::TracingObserver;
#[cfg(feature = "metrics")]
pub use metrics::MetricsObserver;
pub use recording::{Recorded, RecordingObserver};
pub use traced::Traced;
pub use traceparent::{TRACEPARENT, TraceParent};

use crate::faults::contained;
use crate::{DeathReason, Error, Event, JobEnd, Lease, Phase, Stats, TaskEnd};

/// Something that happened in a relay, a scheduler or a supervisor.
#[derive(Debug)]
#[non_exhaustive]
pub enum Transition<'a> {
    /// A claim brought this many events.
    Claimed {
        /// Events.
        events: usize,
        /// How long the store took.
        took: Duration,
    },
    /// An attempt begins.
    Attempting {
        /// The event.
        event: &'a Arc<Event>,
    },
    /// The receiver has the event; the settle follows.
    Delivered {
        /// The event.
        event: &'a Arc<Event>,
        /// How long the attempt took.
        took: Duration,
        /// How long ago it was enqueued (or replayed): from the producer's insert to this delivery.
        age: Duration,
        /// The receiver's answer in short.
        detail: Option<&'a str>,
    },
    /// An attempt failed and will be made again.
    Retrying {
        /// The event.
        event: &'a Arc<Event>,
        /// How long the attempt took.
        took: Duration,
        /// From now until it is due again.
        after: Duration,
        /// How far the attempt had come.
        phase: Phase,
        /// What went wrong, cleaned and capped.
        error: &'a str,
    },
    /// Nothing was attempted and nothing is charged; due again later.
    Deferred {
        /// The event.
        event: &'a Arc<Event>,
        /// From now until it is due again.
        after: Duration,
        /// Why.
        reason: &'a str,
    },
    /// The event becomes a dead letter.
    Dead {
        /// The event; `None` where its row could not be read.
        event: Option<&'a Arc<Event>>,
        /// Its lease, with its number.
        lease: Lease,
        /// How long the last attempt took; `None` where it died undelivered (expired, too many
        /// claims, unreadable).
        took: Option<Duration>,
        /// Why.
        reason: DeathReason,
        /// What went wrong, cleaned and capped.
        error: &'a str,
    },
    /// Events that never started went back, uncharged.
    Released {
        /// Events.
        events: usize,
    },
    /// At the end of a run: events that it gave up, as [`Report::abandoned`](crate::Report) counts
    /// them. Their attempts were cut off, or the store was not told what came of them; they are
    /// delivered again when their leases have expired.
    Abandoned {
        /// Events.
        events: usize,
    },
    /// A lease was taken over, or ran out with nobody to settle it.
    LeaseLost {
        /// Which.
        lease: Lease,
    },
    /// A settle was made.
    Settled {
        /// Events.
        events: usize,
        /// How long the store took.
        took: Duration,
    },
    /// The store failed after it had worked: said once per outage.
    StoreDown {
        /// What it said.
        error: &'a Error,
    },
    /// The store works again.
    StoreUp {
        /// How long it was down.
        outage: Duration,
    },
    /// The state of a store, as the stats job found it.
    Stats {
        /// The state.
        stats: &'a Stats,
    },
    /// A run of a scheduled job ended.
    JobEnded {
        /// The job's name.
        name: &'a str,
        /// How.
        end: &'a JobEnd,
        /// How long it ran; zero where it did not.
        took: Duration,
    },
    /// A supervised task or a close hook ended.
    TaskEnded {
        /// Its name.
        name: &'a str,
        /// How.
        end: &'a TaskEnd,
    },
    /// A supervisor begins to stop its tasks.
    ShutdownBegan,
    /// A supervisor has stopped its tasks.
    ShutdownFinished {
        /// From the begin.
        took: Duration,
        /// Tasks and hooks that did not end in time.
        abandoned: usize,
    },
}

impl Transition<'_> {
    /// Its name in snake case, for labels and tests.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Claimed { .. } => "claimed",
            Self::Attempting { .. } => "attempting",
            Self::Delivered { .. } => "delivered",
            Self::Retrying { .. } => "retrying",
            Self::Deferred { .. } => "deferred",
            Self::Dead { .. } => "dead",
            Self::Released { .. } => "released",
            Self::Abandoned { .. } => "abandoned",
            Self::LeaseLost { .. } => "lease_lost",
            Self::Settled { .. } => "settled",
            Self::StoreDown { .. } => "store_down",
            Self::StoreUp { .. } => "store_up",
            Self::Stats { .. } => "stats",
            Self::JobEnded { .. } => "job_ended",
            Self::TaskEnded { .. } => "task_ended",
            Self::ShutdownBegan => "shutdown_began",
            Self::ShutdownFinished { .. } => "shutdown_finished",
        }
    }

    /// The number of the event that it is about, if it is about one.
    #[must_use]
    pub fn seq(&self) -> Option<i64> {
        match self {
            Self::Attempting { event }
            | Self::Delivered { event, .. }
            | Self::Retrying { event, .. }
            | Self::Deferred { event, .. } => Some(event.seq),
            Self::Dead { lease, .. } | Self::LeaseLost { lease } => Some(lease.seq),
            _ => None,
        }
    }
}

/// Sees every transition, in the task of whoever makes it: be quick, and don't block.
///
/// # Contract
///
/// It decides nothing. A panic in it is caught and has no effect.
///
/// # Example
///
/// ```
/// use outbox_core::{Observer, Transition};
///
/// struct AlertOnDeath;
///
/// impl Observer for AlertOnDeath {
///     fn on(&self, transition: &Transition<'_>) {
///         if let Transition::Dead { lease, reason, .. } = transition {
///             eprintln!("event {} is dead: {reason}", lease.seq);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// Something happened.
    fn on(&self, transition: &Transition<'_>);
}

/// Tells observers, each inside a panic boundary.
pub(crate) fn notify_all(observers: &[Arc<dyn Observer>], transition: &Transition<'_>) {
    for observer in observers {
        notify(&**observer, transition);
    }
}

/// Tells an observer, inside a panic boundary.
pub(crate) fn notify(observer: &dyn Observer, transition: &Transition<'_>) {
    // What the observer broke by its panic is its own.
    if let Err(message) = contained(|| observer.on(transition)) {
        tracing::error!(target: "outbox::observer", message, "an observer panicked");
    }
}
