//! The relay on PostgreSQL: throughput beside the store's own, the time from commit to delivery, a
//! destination that hangs, idling, several processes on one database, webhooks end to end.
//!
//! `cargo bench -p tests --bench relay -- [part…] [events]`
//!
//! Parts: `throughput`, `latency`, `hang`, `idle`, `processes`, `webhooks`; all without an argument. Only the
//! ratios within one run count.
#![expect(clippy::print_stdout, reason = "a program")]

mod cpu;
mod hang;
mod idle;
mod latency;
mod processes;
mod pulse;
mod setup;
mod throughput;
mod webhooks;

use setup::Bench;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if let [part, url] = args.as_slice()
        && part == processes::CHILD
    {
        return runtime.block_on(processes::child(url));
    }
    if args == [webhooks::RECEIVER] {
        return runtime.block_on(webhooks::receive());
    }
    let events = args.iter().find_map(|arg| arg.parse().ok());
    let events = events.unwrap_or(200_000);
    let named = args.iter().any(|arg| arg.parse::<u32>().is_err());
    let wanted = |part: &str| !named || args.iter().any(|arg| arg == part);
    runtime.block_on(async {
        let bench = Bench::start().await;
        if wanted("throughput") {
            throughput::run(&bench, events).await;
        }
        if wanted("latency") {
            latency::run(&bench).await;
        }
        if wanted("hang") {
            hang::run(&bench, events / 2).await;
        }
        if wanted("idle") {
            idle::run(&bench).await;
        }
        if wanted("processes") {
            processes::run(&bench, events).await;
        }
        if wanted("webhooks") {
            webhooks::run(&bench, events / 2).await;
        }
    });
}
