//! From `tracing` to OpenTelemetry, with an exporter that prints.

use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider,
};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use outbox_core::{Delivery, DeliveryError, Receipt, TraceParent, Transport, async_trait};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Makes spans of `tracing` spans of OpenTelemetry. A service takes an exporter of OTLP here.
pub(crate) fn install() -> Result<SdkTracerProvider, Box<dyn std::error::Error>> {
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(Print)
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("observability"));
    tracing_subscriber::registry().with(layer).try_init()?;
    Ok(provider)
}

/// The current span as W3C `traceparent` (Trace Context, section 3.2).
pub(crate) fn current() -> Option<String> {
    let context = Span::current().context();
    let span = context.span().span_context().clone();
    span.is_valid().then(|| {
        let (trace, id) = (span.trace_id(), span.span_id());
        format!("00-{trace}-{id}-{:02x}", span.trace_flags().to_u8())
    })
}

/// Links the span of an attempt ([`Traced`](outbox_core::Traced)) to the one that caused the event:
/// a link and no parent, as the attempt may come days later, and again.
pub(crate) struct Linked<T>(T);

impl<T: Transport> Linked<T> {
    pub(crate) const fn new(transport: T) -> Self {
        Self(transport)
    }
}

#[async_trait]
impl<T: Transport> Transport for Linked<T> {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        if let Some(cause) = TraceParent::of(delivery.event()) {
            let flags = if cause.is_sampled() {
                TraceFlags::SAMPLED
            } else {
                TraceFlags::default()
            };
            let trace = TraceId::from_bytes(cause.trace_id().to_be_bytes());
            let span = SpanId::from_bytes(cause.span_id().to_be_bytes());
            let cause = SpanContext::new(trace, span, flags, true, TraceState::default());
            Span::current().add_link(cause);
        }
        self.0.deliver(delivery).await
    }
}

#[derive(Debug)]
struct Print;

impl SpanExporter for Print {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        for span in batch {
            let attribute = |name: &str| {
                let found = span.attributes.iter().find(|a| a.key.as_str() == name);
                found.map_or(String::new(), |a| format!(" {name}={}", a.value))
            };
            let links = span.links.iter().map(|link| {
                let cause = &link.span_context;
                format!(" caused by {}/{}", cause.trace_id(), cause.span_id())
            });
            println!(
                "{} {}/{}{}{}{}{}{}",
                span.name,
                span.span_context.trace_id(),
                span.span_context.span_id(),
                attribute("push"),
                attribute("event.seq"),
                attribute("attempt"),
                attribute("outcome"),
                links.collect::<String>(),
            );
        }
        Ok(())
    }
}
