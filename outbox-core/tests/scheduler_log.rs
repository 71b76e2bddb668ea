//! What the scheduler writes to the log.
//!
//! In a program of its own: a line that some thread without a subscriber reaches first can stay
//! unheard in the whole process (`tracing` keeps the interest in it), so no other test may run
//! beside this one.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod sim;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::{JobRun, Observer, Schedule, ScheduledJob, Scheduler, Timer, Transition};
use sim::Sim;

const SECOND: Duration = Duration::from_secs(1);

/// The lines of the scheduler's log, as level and text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "outbox::scheduler"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let line = format!("{} {}", event.metadata().level(), text.0);
        self.0.lock().unwrap().push(line);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// How many runs the observer was told of as failed.
#[derive(Default)]
struct Failures(AtomicU32);

impl Observer for Failures {
    fn on(&self, transition: &Transition<'_>) {
        if matches!(transition, Transition::JobEnded { end, .. } if end.is_failure()) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn an_outage_is_an_error_of_the_log_once_and_its_end_is_told() {
    let (sim, log, failures) = (Sim::new(), Log::default(), Arc::<Failures>::default());
    let count = AtomicU32::new(0);
    let down = move |_: JobRun| {
        let run = count.fetch_add(1, Ordering::Relaxed);
        async move {
            if (1..5).contains(&run) {
                Err("down")
            } else {
                Ok(())
            }
        }
    };
    let job = ScheduledJob::new("j", Schedule::every(10 * SECOND), down);
    let scheduler = Scheduler::builder(sim.clone())
        .job(job)
        .observer(Arc::clone(&failures));
    tracing::subscriber::with_default(log.clone(), || {
        let scheduler = scheduler.build().unwrap();
        sim.run(scheduler.run(sim.sleep(75 * SECOND)));
    });
    let expected = [
        "DEBUG job ended",
        "ERROR job failed",
        "DEBUG job ended",
        "DEBUG job ended",
        "DEBUG job ended",
        "INFO job works again",
        "DEBUG job ended",
    ];
    assert_eq!(*log.0.lock().unwrap(), expected);
    assert_eq!(failures.0.load(Ordering::Relaxed), 4);
}
