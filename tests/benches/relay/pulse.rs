//! What a relay asked of its store, and what came of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outbox_core::{Observer, Transition};

/// Counts calls, their events and their time.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pulse(Arc<[Calls; 2]>);

#[derive(Debug, Default)]
struct Calls {
    made: AtomicU64,
    events: AtomicU64,
    micros: AtomicU64,
}

impl Calls {
    fn add(&self, events: usize, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.made.fetch_add(1, Ordering::Relaxed);
        self.events
            .fetch_add(u64::try_from(events).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Observer for Pulse {
    fn on(&self, transition: &Transition<'_>) {
        match transition {
            Transition::Claimed { events, took } => self.0[0].add(*events, *took),
            Transition::Settled { events, took } => self.0[1].add(*events, *took),
            _ => {}
        }
    }
}

impl fmt::Display for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, calls) in ["claims", "settles"].into_iter().zip(&*self.0) {
            let [made, events, micros] =
                [&calls.made, &calls.events, &calls.micros].map(|n| n.load(Ordering::Relaxed));
            let each = made.max(1);
            write!(
                f,
                "{made} {name} of {} events and {} µs; ",
                events / each,
                micros / each
            )?;
        }
        Ok(())
    }
}
