use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use outbox_core::Transport;
use outbox_tower::metrics::MetricsLayer;
use outbox_tower::{ServiceTransport, TransportService};
use tower::Layer;

use crate::support::{Moody, delivery, delivery_to, poll_once};

/// Keeps counters and gauges by name and labels.
#[derive(Default)]
struct Kept(Mutex<HashMap<String, Arc<AtomicU64>>>);

impl Kept {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        Arc::clone(self.0.lock().unwrap().entry(name).or_default())
    }

    fn attempts(&self, outcome: &str) -> u64 {
        let name = format!("outbox_tower_attempts_total webhooks {outcome}");
        self.0.lock().unwrap()[&name].load(Ordering::SeqCst)
    }

    fn in_flight(&self) -> f64 {
        let name = "outbox_tower_attempts_in_flight webhooks";
        f64::from_bits(self.0.lock().unwrap()[name].load(Ordering::SeqCst))
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn attempts_are_counted_by_outcome_and_those_in_flight_shown() {
    let kept = Kept::default();
    let layer = MetricsLayer::new().label("stack", "webhooks");
    let stack = with_local_recorder(&kept, || {
        layer.layer(TransportService::new(Moody::default()))
    });
    let transport = ServiceTransport::new(stack);
    transport.deliver(delivery()).await.unwrap();
    for destination in ["down", "busy", "gone"] {
        transport
            .deliver(delivery_to(destination))
            .await
            .unwrap_err();
    }
    let mut hanging = transport.deliver(delivery_to("hangs"));
    assert!(poll_once(&mut hanging).await.is_none());
    assert!((kept.in_flight() - 1.0).abs() < f64::EPSILON);
    drop(hanging);
    assert!(kept.in_flight().abs() < f64::EPSILON);
    for outcome in [
        "delivered",
        "transient",
        "throttled",
        "permanent",
        "dropped",
    ] {
        assert_eq!(kept.attempts(outcome), 1, "{outcome}");
    }
    assert_eq!(kept.attempts("not_attempted"), 0);
}
