//! The `PgStore`s of outbox-sqlx and outbox-diesel beside statements written by hand, on one server.
//!
//! `cargo bench -p tests --bench store -- [part…] [events]`
//!
//! Parts: `drain`, `keys`, `size`, `horizon`, `parked`, `enqueue`, `wal`, `memory`; all without an
//! argument. Each has a number of events of its own, which the argument replaces. Each checks what it
//! measures: no event comes twice, none is left out. Only the ratios within one run count.
#![expect(clippy::print_stdout, reason = "a program")]

mod alternate;
mod cached;
mod check;
mod diesel_inserts;
mod drain;
mod enqueue;
mod hand;
mod horizon;
mod inserts;
mod keys;
mod memory;
mod parked;
mod rounds;
mod setup;
mod size;
mod wal;
mod worker;

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
    if let [part, batch, url] = args.as_slice()
        && part == memory::CHILD
    {
        return runtime.block_on(memory::child(batch, url));
    }
    let events: Option<u32> = args.iter().find_map(|arg| arg.parse().ok());
    let named = args.iter().any(|arg| arg.parse::<u32>().is_err());
    let wanted = |part: &str| !named || args.iter().any(|arg| arg == part);
    runtime.block_on(async {
        let bench = Bench::start().await;
        if wanted("drain") {
            drain::run(&bench, events.unwrap_or(60_000)).await;
        }
        if wanted("keys") {
            keys::run(&bench, events.unwrap_or(60_000)).await;
        }
        if wanted("size") {
            size::run(&bench, events.unwrap_or(5_000_000)).await;
        }
        if wanted("horizon") {
            horizon::run(&bench, events.unwrap_or(500_000)).await;
        }
        if wanted("parked") {
            parked::run(&bench, events.unwrap_or(1_000_000)).await;
        }
        if wanted("enqueue") {
            enqueue::run(&bench, events.unwrap_or(20_000)).await;
        }
        if wanted("wal") {
            wal::run(&bench, events.unwrap_or(20_000)).await;
        }
        if wanted("memory") {
            memory::run(&bench, events.unwrap_or(200_000)).await;
        }
    });
}
