//! The cost of a claim beside millions of pending, published and dead rows.

use crate::alternate::{Side, alternate, report};
use crate::setup::{Bench, Fill};

const TURNS: usize = 300;
const SMALL: u32 = 10_000;
/// Events of one key, on average.
const PER_KEY: u32 = 100;

pub(crate) async fn run(bench: &Bench, events: u32) {
    let (published, dead) = (events / 5, events / 50);
    println!(
        "\nsize: {events} pending, {published} published, {dead} dead, beside {SMALL} pending; payloads of 200 bytes"
    );
    println!("claims of 100, µs, median of {TURNS} in turns");
    println!("           large: rows, claim, claim+settle; small: the same; ratios");
    let small = bench.another().await;
    for keyed in [false, true] {
        let keys = |events: u32| format!("floor(random() * {})::bigint::text", events / PER_KEY);
        let (many, few) = (keys(events), keys(SMALL));
        let fill = |events, key| Fill {
            bytes: 200,
            key: keyed.then_some(key),
            ..Fill::of(events)
        };
        let (large_fill, small_fill) = (fill(events, many.as_str()), fill(SMALL, few.as_str()));
        bench.clear().await;
        bench.add(&large_fill).await;
        ended(bench, published, dead).await;
        bench.settle_down().await;
        small.fill(&small_fill).await;
        let sides = [
            Side {
                bench,
                refill: large_fill,
            },
            Side {
                bench: &small,
                refill: small_fill,
            },
        ];
        let costs = alternate(sides, TURNS).await;
        report(if keyed { "keyed" } else { "unordered" }, &costs);
    }
    bench.clear().await;
}

/// Adds published and dead rows.
async fn ended(bench: &Bench, published: u32, dead: u32) {
    const COLUMNS: &str =
        "seq, id, created_at, attempts, replays, event_type, destination, content_type, payload";
    const VALUES: &str = "-n, gen_random_uuid(), now(), 1, 0, 'T', 'd', 'application/json', \
        decode(repeat('ab', 200), 'hex')";
    for (table, rows, more, values) in [
        ("outbox_published", published, "published_at", "now()"),
        ("outbox_dead", dead, "dead_at, reason", "now(), 'other'"),
    ] {
        let insert = format!(
            "INSERT INTO {table} ({COLUMNS}, {more})
             SELECT {VALUES}, {values} FROM generate_series(1, {rows}) n"
        );
        bench.execute(&insert).await;
        bench.execute(&format!("ANALYZE {table}")).await;
    }
}
