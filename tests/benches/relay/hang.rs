//! One destination of a hundred hangs until its time-out; what the ninety-nine others get.

use std::time::{Duration, Instant};

use outbox_core::{Delivery, DeliveryError, Receipt, Relay, TokioTimer, Transport, async_trait};

use crate::cpu::Processes;
use crate::pulse::Pulse;
use crate::setup::{Bench, Nothing, median, rate, store};

const DESTINATIONS: u32 = 100;
const ROUNDS: usize = 15;

struct Receivers {
    others: Nothing,
    hangs: bool,
}

#[async_trait]
impl Transport for Receivers {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let first = delivery.event().destination.starts_with("https://ci-0.");
        if first && self.hangs {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        if !first {
            self.others.count();
        }
        Ok(Receipt::new())
    }
}

/// What one side of a round came to.
struct Side {
    rate: f64,
    cost: String,
    pulse: Pulse,
    statements: Vec<String>,
}

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!(
        "\nhang: {events} events, {DESTINATIONS} destinations that take 2 ms, concurrency 256, \
         8 each, time-out 2 s; the others' thousand events/s, {ROUNDS} rounds in turn"
    );
    let (mut well, mut hanging, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for round in 0..ROUNDS {
        // Each goes first in every other round.
        let first = round % 2 == 1;
        let one = others(bench, events, first).await;
        let other = others(bench, events, !first).await;
        let (all_well, one_hangs) = if first { (other, one) } else { (one, other) };
        well.push(all_well.rate);
        hanging.push(one_hangs.rate);
        ratios.push(one_hangs.rate / all_well.rate);
        last = Some([("all well", all_well), ("one hangs", one_hangs)]);
    }
    let shown: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    println!(
        "all well {:.1}, one hangs {:.1}, median of the rounds' ratios {:.2} ({})",
        median(well),
        median(hanging),
        median(ratios),
        shown.join(" ")
    );
    for (name, side) in last.into_iter().flatten() {
        println!(
            "the last round, {name}: {:.1}; CPU for each event, µs: {}",
            side.rate, side.cost
        );
        println!("      {}", side.pulse);
        for line in side.statements {
            println!("      {line}");
        }
    }
}

async fn others(bench: &Bench, events: u32, hangs: bool) -> Side {
    bench.fill(events, DESTINATIONS).await;
    let expected = events - events / DESTINATIONS;
    let (others, done) = Nothing::until(expected);
    let pulse = Pulse::default();
    let relay = Relay::builder(store(&bench.pool), Receivers { others, hangs }, TokioTimer)
        .concurrency(256)
        .delivery_timeout(Duration::from_secs(2))
        .observer(pulse.clone())
        .build()
        .expect("valid");
    bench.forget_statements().await;
    let processes = Processes::of(&bench.pool, 0).await;
    let before = processes.now();
    let begun = Instant::now();
    let running = relay.run(std::future::pending());
    tokio::select! {
        _ = running => {}
        _ = done => {}
    }
    Side {
        rate: rate(expected, begun.elapsed()),
        cost: processes.since(before, expected),
        pulse,
        statements: bench.statements().await,
    }
}
