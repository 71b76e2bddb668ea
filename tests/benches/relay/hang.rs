//! One destination of a hundred hangs until its time-out; what the ninety-nine others get.

use std::time::{Duration, Instant};

use outbox_core::{Delivery, DeliveryError, Receipt, Relay, TokioTimer, Transport, async_trait};

use crate::setup::{Bench, Nothing, median, rate, store};

const DESTINATIONS: u32 = 100;
const ROUNDS: usize = 3;

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

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!(
        "\nhang: {events} events, {DESTINATIONS} destinations that take 2 ms, concurrency 256, \
         8 each, time-out 2 s; the others' thousand events/s, median of {ROUNDS}"
    );
    let (mut all_well, mut one_hangs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        all_well.push(others(bench, events, false).await);
        one_hangs.push(others(bench, events, true).await);
    }
    let (all_well, one_hangs) = (median(all_well), median(one_hangs));
    println!(
        "all well {all_well:.1}, one hangs {one_hangs:.1}, ratio {:.2}",
        one_hangs / all_well
    );
}

async fn others(bench: &Bench, events: u32, hangs: bool) -> f64 {
    bench.fill(events, DESTINATIONS).await;
    let expected = events - events / DESTINATIONS;
    let (others, done) = Nothing::until(expected);
    let relay = Relay::builder(store(&bench.pool), Receivers { others, hangs }, TokioTimer)
        .concurrency(256)
        .delivery_timeout(Duration::from_secs(2))
        .build()
        .expect("valid");
    let begun = Instant::now();
    let running = relay.run(std::future::pending());
    tokio::select! {
        _ = running => {}
        _ = done => {}
    }
    rate(expected, begun.elapsed())
}
