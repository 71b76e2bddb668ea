//! What a relay tells the outside: metrics as Prometheus reads them, and a trace in which each
//! attempt is linked to the request that caused the event. Nothing leaves the process.
//!
//! `cargo run --example observability --features observability`
//!
//! Rules for alerts on these metrics: `docs/alerts.yml`.
#![expect(clippy::print_stdout, reason = "a program")]

mod receiver;
mod spans;

use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use outbox_core::jobs::ExportStats;
use outbox_core::{
    Backoff, Enqueue, MemoryStore, MetricsObserver, NewEvent, Relay, Schedule, ScheduledJob,
    Scheduler, TRACEPARENT, TokioTimer, Traced, TracingObserver,
};
use tracing::Instrument;

use receiver::Flaky;
use spans::Linked;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// In seconds: from a delivery within one machine to one that a time-out ends.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // First the recorder and the subscriber, then what uses them.
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let prometheus = PrometheusBuilder::new()
        .set_buckets_for_metric(seconds, &BUCKETS)?
        .install_recorder()?;
    let provider = spans::install()?;

    let metrics = Arc::new(MetricsObserver::new().with_event_type().with_destination());
    let store = MemoryStore::new();
    for push in 1..=8 {
        accept_push(&store, push).await?;
    }

    let transport = Traced::new(Linked::new(Flaky::default()));
    let relay = Relay::builder(store.clone(), transport, TokioTimer)
        .retry(
            Backoff::exponential()
                .base(Duration::from_millis(5))
                .max_attempts(3),
        )
        .observer(Arc::clone(&metrics))
        .observer(TracingObserver)
        .build()?;
    let stats = ExportStats::new(store, Arc::clone(&metrics));
    let every = Schedule::every(Duration::from_millis(50));
    let jobs = Scheduler::builder(TokioTimer)
        .job(ScheduledJob::new("stats", every, stats))
        .observer(metrics)
        .build()?;
    let stop = || tokio::time::sleep(Duration::from_millis(500));
    tokio::join!(relay.run(stop()), jobs.run(stop()));

    println!("\n# What an endpoint for Prometheus answers:\n");
    print!("{}", prometheus.render());
    provider.shutdown()?;
    Ok(())
}

/// A request: its span is the cause of the event, which carries it as W3C `traceparent`.
async fn accept_push(store: &MemoryStore, push: u32) -> Result<()> {
    let request = tracing::info_span!("accept_push", push);
    async {
        let mut tx = store.begin();
        let mut event = NewEvent::json("RepositoryPushed", &push)?.to("https://ci.example/hooks");
        if let Some(traceparent) = spans::current() {
            event = event.header(TRACEPARENT, traceparent);
        }
        store.enqueue(&mut tx, event).await?;
        tx.commit();
        Ok(())
    }
    .instrument(request)
    .await
}
