//! The spans and lines of an attempt.
//!
//! In a program of its own: a line that some thread without a subscriber reaches first can stay
//! unheard in the whole process (`tracing` keeps the interest in it), so no test without one may
//! run beside these.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::mock::event;
use outbox_core::{Delivery, DeliveryError, Phase, Receipt, Transport, async_trait};
use outbox_tower::trace::TraceLayer;
use outbox_tower::{ServiceTransport, TransportService};
use tower::Layer;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// Answers all but the destination `down`.
struct Answers;

#[async_trait]
impl Transport for Answers {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        match delivery.event().destination.as_str() {
            "down" => Err(DeliveryError::transient("down").with_phase(Phase::Waiting)),
            _ => Ok(Receipt::new()),
        }
    }
}

fn delivery_to(destination: &str) -> Delivery {
    let mut event = event();
    event.destination = destination.to_owned();
    Delivery::new(Arc::new(event), Duration::from_secs(30))
}

/// What was said, with its fields, as text.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Lines {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
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
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// What one attempt says.
fn said(delivery: Delivery) -> String {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let stack = TraceLayer::new().layer(TransportService::new(Answers));
        let transport = ServiceTransport::new(stack);
        let _ = futures::executor::block_on(transport.deliver(delivery));
    });
    lines.0.lock().unwrap().join("\n")
}

#[test]
fn an_attempt_has_a_span_that_names_the_event_and_the_producers_trace() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let delivery = delivery_to("https://ci.example/hooks/secret?token=secret");
    let mut event = outbox_core::Event::clone(delivery.event());
    event.headers.insert("traceparent".into(), parent.into());
    let id = event.id.to_string();
    let said = said(Delivery::new(Arc::new(event), delivery.timeout()));
    assert!(said.starts_with("span deliver"), "{said}");
    for part in [id.as_str(), parent, "attempt=1", "ci.example"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn a_failure_is_a_warning_and_a_success_is_not() {
    let failed = said(delivery_to("down"));
    assert!(
        failed.contains("WARN") && failed.contains("Transient"),
        "{failed}"
    );
    let delivered = said(delivery_to("somewhere"));
    assert!(delivered.contains("DEBUG message=delivered"), "{delivered}");
    assert!(!delivered.contains("WARN"), "{delivered}");
}
