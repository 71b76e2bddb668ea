//! Metrics through the `metrics` facade: whatever recorder the application installs gets them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{
    Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use super::destination::shown_destination;
use super::{Observer, Transition};
use crate::{Event, Stats};

/// Counters, histograms and gauges about relays, jobs and shutdowns.
///
/// `docs/operations.md` lists every metric with its unit and labels, and rules for alerts. Gauges
/// about the store come from the stats job ([`jobs::ExportStats`](crate::jobs::ExportStats)).
/// Durations are in seconds. Labels have few values: `event_type` and `destination` are left out
/// unless asked for, and beyond [`label_values`](Self::label_values) become `other`.
///
/// Make it after the recorder is installed, or the recorder misses the descriptions.
#[derive(Debug)]
pub struct MetricsObserver {
    event_types: Option<Values>,
    destinations: Option<Values>,
    label_values: usize,
}

impl Default for MetricsObserver {
    fn default() -> Self {
        Self::new()
    }
}

impl MetricsObserver {
    /// Describes the metrics to the recorder. No label `event_type` or `destination`.
    #[must_use]
    pub fn new() -> Self {
        describe();
        Self {
            event_types: None,
            destinations: None,
            label_values: 100,
        }
    }

    /// Labels metrics of attempts with the type of the event.
    #[must_use]
    pub fn with_event_type(mut self) -> Self {
        self.event_types = Some(Values::default());
        self
    }

    /// Labels metrics of attempts with the destination; of a URL, its scheme, host and port.
    #[must_use]
    pub fn with_destination(mut self) -> Self {
        self.destinations = Some(Values::default());
        self
    }

    /// The most values of each of these labels; the first ones seen keep their names. Default: 100.
    #[must_use]
    pub const fn label_values(mut self, most: usize) -> Self {
        self.label_values = most;
        self
    }

    fn labels(&self, event: Option<&Event>, first: Label) -> Vec<Label> {
        let mut labels = vec![first];
        let mut add = |name, values: Option<&Values>, value: Option<&str>| {
            if let Some(values) = values {
                let value =
                    value.map_or("unknown".into(), |v| values.bounded(v, self.label_values));
                labels.push(Label::new(name, value.into_owned()));
            }
        };
        let destination = event.map(|event| shown_destination(&event.destination));
        let event_type = event.map(|event| event.event_type.as_str());
        add("event_type", self.event_types.as_ref(), event_type);
        add("destination", self.destinations.as_ref(), destination);
        labels
    }

    fn attempt(&self, event: Option<&Event>, outcome: &'static str, took: Duration) {
        let labels = self.labels(event, Label::from_static_parts("outcome", outcome));
        histogram!("outbox_attempt_duration_seconds", labels.clone()).record(took);
        counter!("outbox_attempts_total", labels).increment(1);
    }
}

impl Observer for MetricsObserver {
    fn on(&self, transition: &Transition<'_>) {
        match *transition {
            Transition::Claimed { events, took } => {
                counter!("outbox_claims_total").increment(1);
                counter!("outbox_claimed_events_total").increment(count(events));
                histogram!("outbox_claim_duration_seconds").record(took);
                gauge!("outbox_store_up").set(1.0);
            }
            Transition::Delivered {
                event, took, age, ..
            } => {
                self.attempt(Some(event), "delivered", took);
                let mut labels = self.labels(Some(event), Label::from_static_parts("", ""));
                labels.remove(0);
                histogram!("outbox_delivery_latency_seconds", labels).record(age);
            }
            Transition::Retrying { event, took, .. } => self.attempt(Some(event), "retried", took),
            Transition::Deferred { .. } => counter!("outbox_deferred_total").increment(1),
            Transition::Dead {
                event,
                took,
                reason,
                ..
            } => {
                if let Some(took) = took {
                    self.attempt(event.map(|event| &**event), "dead", took);
                }
                counter!("outbox_deaths_total", "reason" => reason.as_str()).increment(1);
            }
            Transition::Released { events } => {
                counter!("outbox_released_total").increment(count(events));
            }
            Transition::Abandoned { events } => {
                counter!("outbox_abandoned_total").increment(count(events));
            }
            Transition::LeaseLost { .. } => counter!("outbox_leases_lost_total").increment(1),
            Transition::Settled { events, took } => {
                counter!("outbox_settled_events_total").increment(count(events));
                histogram!("outbox_settle_duration_seconds").record(took);
            }
            Transition::StoreDown { .. } => gauge!("outbox_store_up").set(0.0),
            Transition::StoreUp { .. } => gauge!("outbox_store_up").set(1.0),
            Transition::Stats { stats } => state(stats),
            Transition::JobEnded { name, end, took } => {
                let job = name.to_owned();
                counter!("outbox_job_runs_total", "job" => job.clone(), "outcome" => end.as_str())
                    .increment(1);
                if !end.is_skipped() {
                    histogram!("outbox_job_duration_seconds", "job" => job).record(took);
                }
            }
            Transition::TaskEnded { name, end } => {
                let task = name.to_owned();
                counter!("outbox_task_ends_total", "task" => task, "outcome" => end.as_str())
                    .increment(1);
            }
            Transition::ShutdownFinished { took, .. } => {
                histogram!("outbox_shutdown_duration_seconds").record(took);
            }
            Transition::Attempting { .. } | Transition::ShutdownBegan => {}
        }
    }
}

fn state(stats: &Stats) {
    for (name, count) in [
        ("outbox_pending", stats.pending),
        ("outbox_claimed", stats.claimed),
        ("outbox_due", stats.due),
        ("outbox_parked", stats.parked),
        ("outbox_dead_letters", stats.dead),
        ("outbox_blocked_keys", stats.blocked_keys),
    ] {
        // Counts stop at a limit far below the last whole number of an f64.
        #[expect(clippy::cast_precision_loss, reason = "a gauge is an f64")]
        gauge!(name).set(count.value as f64);
    }
    gauge!("outbox_oldest_due_age_seconds").set(stats.oldest_due.unwrap_or_default());
}

fn count(events: usize) -> u64 {
    u64::try_from(events).unwrap_or(u64::MAX)
}

/// The values of a label that have been seen.
#[derive(Debug, Default)]
struct Values(Mutex<BTreeSet<String>>);

impl Values {
    fn bounded<'a>(&self, value: &'a str, most: usize) -> Cow<'a, str> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.contains(value) {
            if seen.len() >= most {
                return "other".into();
            }
            seen.insert(value.to_owned());
        }
        value.into()
    }
}

/// Names, units and what they mean.
fn describe() {
    for (name, unit, text) in [
        (
            "outbox_claims_total",
            Unit::Count,
            "Claims that the store answered, empty ones included",
        ),
        (
            "outbox_claimed_events_total",
            Unit::Count,
            "Events that claims brought",
        ),
        (
            "outbox_attempts_total",
            Unit::Count,
            "Attempts to deliver, by outcome",
        ),
        (
            "outbox_deferred_total",
            Unit::Count,
            "Events put off without an attempt",
        ),
        (
            "outbox_released_total",
            Unit::Count,
            "Events given back before they started",
        ),
        (
            "outbox_abandoned_total",
            Unit::Count,
            "Events given up at the end of a run",
        ),
        (
            "outbox_deaths_total",
            Unit::Count,
            "Events that became dead letters, by reason",
        ),
        (
            "outbox_leases_lost_total",
            Unit::Count,
            "Leases that another claim took over",
        ),
        (
            "outbox_settled_events_total",
            Unit::Count,
            "Events whose outcome was written",
        ),
        (
            "outbox_job_runs_total",
            Unit::Count,
            "Runs of scheduled jobs, by outcome",
        ),
        (
            "outbox_task_ends_total",
            Unit::Count,
            "Ends of supervised tasks, by outcome",
        ),
    ] {
        describe_counter!(name, unit, text);
    }
    for (name, text) in [
        (
            "outbox_claim_duration_seconds",
            "Time of a claim in the store",
        ),
        (
            "outbox_attempt_duration_seconds",
            "Time of an attempt, by outcome",
        ),
        (
            "outbox_delivery_latency_seconds",
            "From enqueue or replay to delivery",
        ),
        (
            "outbox_settle_duration_seconds",
            "Time of a settle in the store",
        ),
        (
            "outbox_job_duration_seconds",
            "Time of a run of a scheduled job",
        ),
        ("outbox_shutdown_duration_seconds", "Time of a shutdown"),
    ] {
        describe_histogram!(name, Unit::Seconds, text);
    }
    for (name, unit, text) in [
        (
            "outbox_store_up",
            Unit::Count,
            "1 while the store answers this relay, else 0",
        ),
        ("outbox_pending", Unit::Count, "Open events"),
        ("outbox_claimed", Unit::Count, "Open events under a lease"),
        (
            "outbox_due",
            Unit::Count,
            "Open events that could be claimed now",
        ),
        (
            "outbox_parked",
            Unit::Count,
            "Open events of held or disabled destinations",
        ),
        (
            "outbox_oldest_due_age_seconds",
            Unit::Seconds,
            "How long the oldest due event has been due",
        ),
        ("outbox_dead_letters", Unit::Count, "Dead letters"),
        (
            "outbox_blocked_keys",
            Unit::Count,
            "Keys that wait for a dead event",
        ),
    ] {
        describe_gauge!(name, unit, text);
    }
}
