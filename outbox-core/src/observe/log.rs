//! Transitions as log lines.

use super::destination::shown_destination;
use super::{Observer, Transition};
use crate::Event;

/// Logs what happens to events, through `tracing`, under the target `outbox`: dead letters at
/// `ERROR`, lost leases and retries at `WARN`, deliveries and deferrals at `DEBUG`, batches at
/// `TRACE`. Payloads, secrets and the paths of URLs are never logged.
///
/// Outages of the store, jobs, tasks and shutdowns are logged by who has them, with this observer
/// or without. For a span per attempt see [`Traced`](crate::Traced).
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit struct, named as a value")]
pub struct TracingObserver;

/// One line about one event, at a level that must be a constant.
macro_rules! about {
    ($level:ident, $event:expr, $text:literal, $($field:tt)*) => {{
        let event: &Event = $event;
        tracing::$level!(
            target: "outbox",
            {
                event.id = %event.id,
                event.seq = event.seq,
                event.type = event.event_type,
                destination = shown_destination(&event.destination),
                attempt = event.attempts,
                $($field)*
            },
            $text
        );
    }};
}

impl Observer for TracingObserver {
    fn on(&self, transition: &Transition<'_>) {
        match *transition {
            Transition::Delivered {
                event, took, age, ..
            } => {
                about!(debug, event, "delivered", ?took, ?age);
            }
            Transition::Retrying {
                event,
                took,
                after,
                phase,
                error,
            } => {
                about!(warn, event, "attempt failed", ?took, ?after, ?phase, error);
            }
            Transition::Deferred {
                event,
                after,
                reason,
            } => {
                about!(debug, event, "not attempted", ?after, reason);
            }
            Transition::Dead {
                event: Some(event),
                reason,
                error,
                ..
            } => {
                about!(error, event, "dead letter", %reason, error);
            }
            Transition::Dead {
                event: None,
                lease,
                reason,
                error,
                ..
            } => {
                let seq = lease.seq;
                tracing::error!(target: "outbox", { event.seq = seq, %reason, error }, "dead letter");
            }
            Transition::LeaseLost { lease } => {
                let seq = lease.seq;
                tracing::warn!(target: "outbox", { event.seq = seq }, "lease lost; may be delivered twice");
            }
            Transition::Claimed { events, took } => {
                tracing::trace!(target: "outbox", events, ?took, "claimed");
            }
            Transition::Settled { events, took } => {
                tracing::trace!(target: "outbox", events, ?took, "settled");
            }
            Transition::Released { events } => {
                tracing::trace!(target: "outbox", events, "released");
            }
            Transition::Abandoned { events } => {
                tracing::warn!(target: "outbox", events, "abandoned; delivered again when their leases end");
            }
            _ => {}
        }
    }
}
