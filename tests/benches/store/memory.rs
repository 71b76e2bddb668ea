//! The memory of a relay that drains a backlog, in a process of its own.

use std::process::Command;

use outbox_core::{
    Delivery, DeliveryError, Receipt, Relay, Retention, TokioTimer, Transport, async_trait,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::PgPool;

use crate::setup::{Bench, Fill};

/// The argument that makes this program the relay.
pub(crate) const CHILD: &str = "memory-child";

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\nmemory: MiB above the start, at most, of a relay that drains a backlog");
    println!(" events  payload  headers  batch  MiB");
    for (events, bytes, headers, batch) in [
        (events, 400, 0, 100),
        (events, 400, 0, 1_000),
        (events / 20, 400, 16_000, 1_000),
        (events / 100, 262_144, 0, 100),
        (events / 100, 262_144, 0, 1_000),
        (events / 400, 1_048_576, 0, 1_000),
    ] {
        bench
            .fill(&Fill {
                bytes,
                headers,
                ..Fill::of(events)
            })
            .await;
        let above = child_says(bench, batch, events);
        println!("{events:7} {bytes:8} {headers:8} {batch:6} {above:4.1}");
        assert_eq!(bench.number("SELECT count(*) FROM outbox_events").await, 0);
    }
}

/// Blocks, in a program with nothing else to do.
fn child_says(bench: &Bench, batch: u32, events: u32) -> f64 {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([CHILD, &batch.to_string(), &bench.url])
        .output()
        .expect("run");
    let said = String::from_utf8_lossy(&output.stdout);
    let [published, start, peak] = said
        .split_whitespace()
        .map(|word| word.parse::<u32>().expect("a number"))
        .collect::<Vec<_>>()
        .try_into()
        .expect("three numbers");
    assert_eq!(published, events, "events are missing or came twice");
    f64::from(peak - start) / 1_024.0
}

/// Delivers until nothing is due; says how many events it were, and the memory before and at most, in
/// KiB.
pub(crate) async fn child(batch: &str, url: &str) {
    let start = status("VmRSS:");
    let pool = PgPool::connect(url).await.expect("connected");
    let store = PgStore::new(pool).retention(Retention::DeleteAtOnce);
    let batch = batch.parse().expect("a number");
    let relay = Relay::builder(store, Nothing, TokioTimer)
        .concurrency(batch)
        .per_destination(batch)
        .batch_size(batch);
    let relay = relay.build().expect("valid");
    let mut published = 0;
    loop {
        let report = relay.run_until_idle().await.expect("delivered");
        published += report.published;
        if report.published == 0 {
            break;
        }
    }
    println!("{published} {start} {}", status("VmHWM:"));
}

/// A line of this process's status.
fn status(name: &str) -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).expect("a number")
}

struct Nothing;

#[async_trait]
impl Transport for Nothing {
    async fn deliver(&self, _: Delivery) -> Result<Receipt, DeliveryError> {
        Ok(Receipt::new())
    }
}
