//! The cost of a claim behind the rows of a held destination.

use std::num::NonZeroU32;
use std::time::Instant;

use outbox_core::{ClaimRequest, Hold, OutboxStore};

use crate::alternate::{Side, alternate, report};
use crate::setup::{Bench, DESTINATION, Fill};
use crate::worker::{LEASE, published};

const TURNS: usize = 300;
const OTHERS: u32 = 20_000;
/// Sorts before the other destination.
const HELD: &str = "https://a.example/held";

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\nparked: {events} rows of a held destination before {OTHERS} others");
    println!("claims of 100, µs, median of {TURNS} in turns");
    println!("           with: rows, claim, claim+settle; without: the same; ratios");
    let without = bench.another().await;
    for key in [None, Some("floor(random() * 1000)::bigint::text")] {
        let others = Fill {
            key,
            ..Fill::of(OTHERS)
        };
        without.fill(&others).await;
        bench.clear().await;
        bench
            .add(&Fill {
                destination: HELD,
                key,
                bytes: 200,
                ..Fill::of(events)
            })
            .await;
        bench.add(&others).await;
        bench.settle_down().await;
        let hold = Hold::Disabled {
            reason: "a test".to_owned(),
        };
        bench.sqlx().hold(HELD, hold).await.expect("held");
        let parking = park(bench).await;
        bench.settle_down().await;
        let sides = [
            Side {
                bench,
                refill: others,
            },
            Side {
                bench: &without,
                refill: others,
            },
        ];
        let costs = alternate(sides, TURNS).await;
        report(if key.is_some() { "keyed" } else { "unordered" }, &costs);
        println!("          (first of the others after {parking:.2} s)");
        let count = format!("SELECT count(*) FROM outbox_events WHERE destination = '{HELD}'");
        let left = bench.number(&count).await;
        assert_eq!(left, i64::from(events), "held rows are gone");
        bench.execute("TRUNCATE outbox_destinations").await;
    }
    bench.clear().await;
}

/// Claims until something comes, which is when the rows before it are parked; in s.
async fn park(bench: &Bench) -> f64 {
    let store = bench.sqlx();
    let begun = Instant::now();
    loop {
        let request = ClaimRequest::new(NonZeroU32::new(100).expect("rows"), LEASE);
        let events = store.claim(&request).await.expect("claimed").events;
        if !events.is_empty() {
            let took = begun.elapsed().as_secs_f64();
            assert!(
                events
                    .iter()
                    .all(|one| one.event.destination == DESTINATION)
            );
            store.settle(&published(&events)).await.expect("settled");
            return took;
        }
    }
}
