//! Order per key: many keys, one key, none; and one hot key beside the others.

use crate::check;
use crate::rounds::{Rounds, rounds};
use crate::setup::{Bench, Fill, rate};
use crate::worker::{Drained, Plan, by_store};

const ROUNDS: usize = 5;
const BATCH: u32 = 100;
const ZIPF: &str = "floor(10000 ^ random())::bigint::text";
const ONE: &str = "'0'";
/// Events of the hot key.
const HOT: u32 = 200_000;

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\nkeys: {events} events of 400 bytes, batch {BATCH}, sqlx, thousand events/s");
    println!("medians of {ROUNDS} rounds; ratio: the median of the rounds' ratios to unordered");
    println!("workers  unordered  10,000 keys (Zipf)  ratio  one key  ratio");
    for workers in [1, 2, 4] {
        let plan = Plan::new(BATCH, workers, events);
        let keys = [None, Some(ZIPF), Some(ONE)];
        let all: Rounds<3> = rounds(ROUNDS, async |side| {
            bench.fill(&backlog(events, keys[side])).await;
            let drained = by_store(|| bench.sqlx(), plan).await;
            check::once(&drained.log, events);
            if keys[side].is_some() {
                check::ordered(&drained.log);
            }
            rate(events, drained.took)
        })
        .await;
        let [none, many, one] = all.rates();
        println!(
            "{workers:7} {none:10.1} {many:19.1} {:6.2} {one:8.1} {:6.2}",
            all.ratio(1, 0),
            all.ratio(2, 0)
        );
    }
    beside_a_hot_key(bench, events).await;
}

async fn beside_a_hot_key(bench: &Bench, events: u32) {
    println!("{events} events of 10,000 keys, without and with {HOT} of one hot key before them");
    println!("workers  without  with  ratio");
    for workers in [1, 2] {
        let both: Rounds<2> = rounds(ROUNDS, async |side| {
            bench.clear().await;
            if side == 1 {
                bench.add(&backlog(HOT, Some(ONE))).await;
            }
            bench.add(&backlog(events, Some(ZIPF))).await;
            bench.settle_down().await;
            rate(events, others(bench, workers, events).await.took)
        })
        .await;
        let [without, with] = both.rates();
        println!(
            "{workers:7} {without:8.1} {with:5.1} {:6.2}",
            both.ratio(1, 0)
        );
    }
}

/// Drains until the events of other keys than the hot one are settled.
async fn others(bench: &Bench, workers: usize, events: u32) -> Drained {
    let mut plan = Plan::new(BATCH, workers, events);
    plan.all = false;
    let drained = by_store(|| bench.sqlx(), plan).await;
    let mut log = drained.log.clone();
    log.retain(|entry| entry.key > 0);
    check::once(&log, events);
    check::ordered(&drained.log);
    drained
}

const fn backlog(events: u32, key: Option<&'static str>) -> Fill<'static> {
    let mut fill = Fill::of(events);
    fill.key = key;
    fill
}
