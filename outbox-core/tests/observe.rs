//! Observers: metrics against their documentation, spans, alerts, and tools for tests.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use outbox_core::{
    Alert, Alerts, Count, DeathReason, Delivery, DeliveryError, Error, ErrorKind, Event, EventId,
    FanOut, JobEnd, Lease, LeaseToken, MetricsObserver, Observer, Phase, Receipt,
    RecordingObserver, Stats, TaskEnd, Traced, TracingObserver, Transition, Transport, async_trait,
};

const SECOND: Duration = Duration::from_secs(1);

fn event() -> Arc<Event> {
    let destination = "https://hooks.example.com/secret?token=1";
    let mut event = Event::new(EventId::new(), 7, "Pushed", destination, "secret payload");
    event.attempts = 2;
    Arc::new(event)
}

fn lease() -> Lease {
    Lease::new(7, LeaseToken::new())
}

/// Tells an observer one of every transition there is.
fn tell_all(observer: &dyn Observer) {
    let (event, lease) = (&event(), lease());
    let error = &Error::new(ErrorKind::Unavailable, "down");
    let mut stats = Stats::default();
    stats.dead = Count::new(101, 1_000);
    let death = |event, took| Transition::Dead {
        event,
        lease,
        took,
        reason: DeathReason::Rejected,
        error: "refused",
    };
    let job = |end| Transition::JobEnded {
        name: "stats",
        end,
        took: SECOND,
    };
    for transition in [
        Transition::Claimed {
            events: 3,
            took: SECOND,
        },
        Transition::Attempting { event },
        Transition::Delivered {
            event,
            took: SECOND,
            age: 5 * SECOND,
            detail: Some("200 OK"),
        },
        Transition::Retrying {
            event,
            took: SECOND,
            after: SECOND,
            phase: Phase::Sending,
            error: "time-out",
        },
        Transition::Deferred {
            event,
            after: SECOND,
            reason: "limit",
        },
        death(Some(event), Some(SECOND)),
        death(None, None),
        Transition::Released { events: 2 },
        Transition::Abandoned { events: 2 },
        Transition::LeaseLost { lease },
        Transition::Settled {
            events: 3,
            took: SECOND,
        },
        Transition::StoreDown { error },
        Transition::StoreUp { outage: SECOND },
        Transition::Stats { stats: &stats },
        job(&JobEnd::Finished),
        job(&JobEnd::Failed("no such table".into())),
        Transition::TaskEnded {
            name: "relay",
            end: &TaskEnd::Abandoned,
        },
        Transition::ShutdownBegan,
        Transition::ShutdownFinished {
            took: SECOND,
            abandoned: 1,
        },
    ] {
        observer.on(&transition);
    }
}

mod metrics_facade {
    use super::*;
    use metrics::{
        Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata,
        Recorder, SharedString, Unit,
    };

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Seen {
        kind: &'static str,
        unit: String,
        described: bool,
        labels: BTreeSet<String>,
    }

    /// What was told, by metric, and the last value of each series.
    #[derive(Clone, Default)]
    struct Book {
        seen: Arc<Mutex<BTreeMap<String, Seen>>>,
        values: Arc<Mutex<BTreeMap<String, f64>>>,
    }

    struct Series(String, Book);

    impl Series {
        fn change(&self, change: impl FnOnce(&mut f64)) {
            change(
                self.1
                    .values
                    .lock()
                    .unwrap()
                    .entry(self.0.clone())
                    .or_default(),
            );
        }
    }

    impl CounterFn for Series {
        fn increment(&self, by: u64) {
            self.change(|value| *value += f64::from(u32::try_from(by).unwrap()));
        }
        fn absolute(&self, _: u64) {}
    }

    impl GaugeFn for Series {
        fn increment(&self, _: f64) {}
        fn decrement(&self, _: f64) {}
        fn set(&self, to: f64) {
            self.change(|value| *value = to);
        }
    }

    impl HistogramFn for Series {
        fn record(&self, sample: f64) {
            self.change(|value| *value = sample);
        }
    }

    impl Book {
        fn describe(&self, name: &KeyName, kind: &'static str, unit: Option<Unit>) {
            let mut seen = self.seen.lock().unwrap();
            let entry = seen.entry(name.as_str().to_owned()).or_default();
            entry.kind = kind;
            entry.unit = unit.unwrap().as_str().to_owned();
            entry.described = true;
        }

        fn register(&self, key: &Key, kind: &'static str) -> Arc<Series> {
            let mut seen = self.seen.lock().unwrap();
            let entry = seen.entry(key.name().to_owned()).or_default();
            assert!(
                entry.kind.is_empty() || entry.kind == kind,
                "{key:?} has two kinds"
            );
            entry.kind = kind;
            let labels = key.labels().map(|label| label.key().to_owned());
            entry.labels.extend(labels);
            Arc::new(Series(key.to_string(), self.clone()))
        }

        fn value(&self, series: &str) -> Option<f64> {
            self.values.lock().unwrap().get(series).copied()
        }
    }

    impl Recorder for Book {
        fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, "counter", unit);
        }
        fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, "gauge", unit);
        }
        fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, "histogram", unit);
        }
        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.register(key, "counter"))
        }
        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.register(key, "gauge"))
        }
        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.register(key, "histogram"))
        }
    }

    /// The table of the operations page.
    fn documented() -> BTreeMap<String, Seen> {
        let page = include_str!("../../docs/operations.md");
        let rows = page.lines().filter(|line| line.starts_with("| `outbox_"));
        rows.map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let code = |text: &str| {
                text.split('`')
                    .skip(1)
                    .step_by(2)
                    .map(str::to_owned)
                    .collect()
            };
            let [name]: [String; 1] = Vec::try_into(code(cells[1])).unwrap();
            let kind = ["counter", "gauge", "histogram"]
                .into_iter()
                .find(|kind| *kind == cells[2]);
            let seen = Seen {
                kind: kind.unwrap(),
                unit: cells[3].to_owned(),
                described: true,
                labels: code(cells[4]).into_iter().collect(),
            };
            (name, seen)
        })
        .collect()
    }

    /// The metrics that the rules of alerts ask for.
    fn alerted() -> BTreeSet<String> {
        let rules = include_str!("../../docs/alerts.yml");
        let lines = rules.lines().filter(|line| line.contains("expr:"));
        let words = lines.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        let names = words.filter(|word| word.starts_with("outbox_"));
        names.map(str::to_owned).collect()
    }

    #[test]
    fn are_there_where_an_alert_asks_for_them() {
        let known: BTreeSet<_> = documented().into_keys().collect();
        let unknown: Vec<_> = alerted().difference(&known).cloned().collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        for needed in [
            "outbox_oldest_due_age_seconds",
            "outbox_dead_letters",
            "outbox_leases_lost_total",
            "outbox_claims_total",
        ] {
            assert!(alerted().contains(needed), "no alert on {needed}");
        }
    }

    fn told(make: impl FnOnce() -> MetricsObserver) -> Book {
        let book = Book::default();
        metrics::with_local_recorder(&book, || tell_all(&make()));
        book
    }

    #[test]
    fn are_told_as_they_are_documented_all_of_them_and_no_others() {
        let book = told(|| MetricsObserver::new().with_event_type().with_destination());
        assert_eq!(*book.seen.lock().unwrap(), documented());
        let values = book.values.lock().unwrap();
        let valued: BTreeSet<_> = values
            .keys()
            .map(|key| {
                key["Key(".len()..]
                    .split([',', ')'])
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(valued, documented().into_keys().collect());
    }

    #[test]
    fn have_no_label_with_many_values_unless_asked_for() {
        let book = told(MetricsObserver::new);
        let seen = book.seen.lock().unwrap();
        let labels: BTreeSet<_> = seen.values().flat_map(|seen| &seen.labels).collect();
        let expected = ["job", "outcome", "reason", "task"].map(str::to_owned);
        assert_eq!(labels, expected.iter().collect());
    }

    #[test]
    fn say_what_happened() {
        let book = told(|| MetricsObserver::new().with_event_type());
        let value = |series| book.value(series);
        let delivered = "Key(outbox_attempts_total, [outcome = delivered, event_type = Pushed])";
        assert_eq!(value(delivered), Some(1.0));
        let latency = "Key(outbox_delivery_latency_seconds, [event_type = Pushed])";
        assert_eq!(value(latency), Some(5.0));
        assert_eq!(
            value("Key(outbox_deaths_total, [reason = rejected])"),
            Some(2.0)
        );
        assert_eq!(value("Key(outbox_claimed_events_total)"), Some(3.0));
        assert_eq!(value("Key(outbox_dead_letters)"), Some(101.0));
        assert_eq!(value("Key(outbox_oldest_due_age_seconds)"), Some(0.0));
        assert_eq!(value("Key(outbox_store_up)"), Some(1.0));
        assert_eq!(value("Key(outbox_shutdown_duration_seconds)"), Some(1.0));
    }

    #[test]
    fn keep_the_number_of_series_bounded_whatever_events_are_called() {
        let book = Book::default();
        metrics::with_local_recorder(&book, || {
            let observer = MetricsObserver::new().with_event_type().label_values(2);
            for name in ["A", "B", "C", "D", "A"] {
                let event = Arc::new(Event::new(EventId::new(), 1, name, "d", ""));
                observer.on(&Transition::Delivered {
                    event: &event,
                    took: SECOND,
                    age: SECOND,
                    detail: None,
                });
            }
        });
        let series = |event_type| {
            let labels = format!("[outcome = delivered, event_type = {event_type}]");
            book.value(&format!("Key(outbox_attempts_total, {labels})"))
        };
        let counts = ["A", "B", "C", "other"].map(series);
        assert_eq!(counts, [Some(2.0), Some(1.0), None, Some(2.0)]);
    }
}

/// `tracing` keeps the interest of whoever reaches a line first, for the whole process: no test of
/// this file may reach the same lines without a subscriber.
mod span {
    use super::*;
    use std::fmt::{Debug, Write};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Metadata, Subscriber};

    /// Spans with their fields, and events with the span they are in, as text.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    struct Fields<'a>(&'a mut String);

    impl Visit for Fields<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
        fn record_str(&mut self, field: &Field, value: &str) {
            write!(self.0, " {}={value}", field.name()).unwrap();
        }
    }

    impl Lines {
        fn add(&self, line: String) {
            self.0.lock().unwrap().push(line);
        }

        fn all(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut line = format!("span {}", span.metadata().name());
            span.record(&mut Fields(&mut line));
            self.add(line);
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, values: &Record<'_>) {
            let mut line = "record".to_owned();
            values.record(&mut Fields(&mut line));
            self.add(line);
        }
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            let mut line = event.metadata().level().to_string();
            event.record(&mut Fields(&mut line));
            self.add(line);
        }
        fn enter(&self, _: &Id) {
            self.add("enter".into());
        }
        fn exit(&self, _: &Id) {
            self.add("exit".into());
        }
    }

    struct Inner;

    #[async_trait]
    impl Transport for Inner {
        async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
            tracing::info!("inside");
            match delivery.event().attempts {
                1 => Ok(Receipt::new()),
                _ => Err(DeliveryError::transient("closed").with_source("reset")),
            }
        }
    }

    fn deliver(event: Event) -> Vec<String> {
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            let delivery = Delivery::new(Arc::new(event), SECOND);
            let result = Traced::new(Inner).deliver(delivery).now_or_never();
            std::mem::drop(result.unwrap());
        });
        lines.all()
    }

    #[test]
    fn holds_an_attempt_and_names_the_producers_trace() {
        let mut event = Event::clone(&event());
        event.attempts = 1;
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        event.headers.insert("Traceparent".into(), parent.into());
        let id = event.id;
        let lines = deliver(event);
        let span = format!(
            "span outbox.attempt event.id={id} event.seq=7 event.type=Pushed \
             destination=https://hooks.example.com attempt=1"
        );
        assert_eq!(lines[0], span);
        assert_eq!(
            lines[1],
            "record link.trace_id=4bf92f3577b34da6a3ce929d0e0e4736"
        );
        assert_eq!(lines[2], "record link.span_id=00f067aa0ba902b7");
        assert_eq!(lines[3], "record link.sampled=true");
        assert_eq!(lines[4..6], ["enter", "INFO message=inside"]);
        assert_eq!(lines.last().unwrap(), "record outcome=delivered");
    }

    #[test]
    fn without_a_readable_trace_has_no_link_and_tells_a_failure_with_its_causes() {
        let mut event = Event::clone(&event());
        event
            .headers
            .insert("traceparent".into(), "00-0-0-0".into());
        let lines = deliver(event);
        assert!(!lines.iter().any(|line| line.contains("link.")));
        assert_eq!(lines[lines.len() - 2], "record outcome=failed");
        assert_eq!(lines.last().unwrap(), "record error=closed: reset");
    }

    #[test]
    fn and_log_lines_never_show_a_payload_or_the_path_of_a_url() {
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone(), || tell_all(&TracingObserver));
        let text = lines.all().join("\n");
        assert!(
            !text.contains("secret") && !text.contains("token"),
            "{text}"
        );
        assert!(text.contains("ERROR message=dead letter"), "{text}");
        assert!(text.contains("WARN message=attempt failed"), "{text}");
        assert!(text.contains("WARN message=lease lost"), "{text}");
    }
}

mod alert {
    use super::*;

    fn collect() -> (Arc<Mutex<Vec<String>>>, impl Fn(&Alert<'_>) + Send + Sync) {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let list = Arc::clone(&seen);
        let call = move |alert: &Alert<'_>| {
            let text = format!("{alert:?}");
            let name = text.split([' ', '{']).next().unwrap().to_owned();
            list.lock().unwrap().push(name);
        };
        (seen, call)
    }

    #[test]
    fn comes_for_each_fault() {
        let (seen, call) = collect();
        tell_all(&Alerts::new(call));
        let expected = [
            "DeadLetter",
            "DeadLetter",
            "LeaseLost",
            "StoreDown",
            "StoreUp",
            "DeadLetters",
            "JobFailed",
            "TaskFailed",
        ];
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn comes_once_when_a_threshold_is_passed_and_once_when_it_is_over() {
        let (seen, call) = collect();
        let alerts = Alerts::new(call).dead_letters(10).oldest_due(60 * SECOND);
        for (dead, oldest) in [(10, 60), (11, 61), (12, 90), (10, 60), (0, 0), (11, 0)] {
            let mut stats = Stats::default();
            stats.dead = Count::new(dead, 1_000);
            stats.oldest_due = Some(Duration::from_secs(oldest));
            alerts.on(&Transition::Stats { stats: &stats });
        }
        let expected = [
            "DeadLetters",
            "OldestDue",
            "DeadLettersCleared",
            "OldestDueCleared",
            "DeadLetters",
        ];
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}

mod recording {
    use super::*;

    #[test]
    fn keeps_every_transition_by_name_with_its_event() {
        let seen = RecordingObserver::new();
        tell_all(&seen);
        assert_eq!(seen.names().len(), 19);
        assert_eq!(seen.names()[..2], ["claimed", "attempting"]);
        assert_eq!(seen.count("dead"), 2);
        assert_eq!(seen.all()[2].seq, Some(7));
        assert!(seen.all()[2].debug.contains("200 OK"));
    }

    #[test]
    fn lets_a_test_wait_for_what_has_yet_to_happen() {
        let seen = RecordingObserver::new();
        let teller = seen.clone();
        let wait = seen.wait_for("released", 2);
        let tell = async move {
            for events in [1, 2] {
                teller.on(&Transition::Released { events });
            }
        };
        futures::executor::block_on(futures::future::join(wait, tell));
        assert_eq!(seen.count("released"), 2);
    }
}

mod fan_out {
    use super::*;

    #[test]
    fn tells_everyone_though_one_panics() {
        struct Broken;
        impl Observer for Broken {
            fn on(&self, _: &Transition<'_>) {
                panic!("observer");
            }
        }
        let (first, last) = (RecordingObserver::new(), RecordingObserver::new());
        let all = FanOut::new()
            .with(first.clone())
            .with(Broken)
            .with(last.clone());
        all.on(&Transition::ShutdownBegan);
        assert_eq!(first.names(), ["shutdown_began"]);
        assert_eq!(last.names(), ["shutdown_began"]);
    }
}
