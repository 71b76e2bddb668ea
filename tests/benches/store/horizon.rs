//! The rate while an old transaction holds the xmin horizon, so that no deleted row can be cleaned
//! away.

use outbox_sqlx::sqlx::{Connection, Executor, PgConnection};

use crate::check;
use crate::hand::{Kind, by_hand};
use crate::setup::{Bench, Fill, median, rate};
use crate::worker::{Drained, Plan, by_store};

const BATCH: u32 = 100;
/// The events come in so many windows; each is enqueued, and then drained.
const WINDOWS: usize = 25;
/// Windows of the loop by hand.
const HAND: usize = 3;
/// Windows of events with keys, which are a fifth as long.
const KEYED: usize = 6;
const KEYS: &str = "floor(10000 ^ random())::bigint::text";

pub(crate) async fn run(bench: &Bench, events: u32) {
    let window = events / 25;
    println!("\nhorizon: windows of {window} events, batch {BATCH}, one worker, thousand events/s");
    println!(
        "free: no old transaction; held: one is open; by hand: held, SKIP LOCKED without a mark"
    );
    println!("keyed: 10,000 keys (Zipf), a fifth as many events");
    println!("  events    free    held  by hand  keyed free  keyed held");
    let [held, hand, keyed, keyed_held] = [
        bench.another().await,
        bench.another().await,
        bench.another().await,
        bench.another().await,
    ];
    let mut old = Vec::new();
    for bench in [&held, &hand, &keyed_held] {
        old.push(old_transaction(bench).await);
    }
    bench.clear().await;
    let one = |bench: &Bench| Lane::new(bench, None);
    let (mut free_lane, mut held_lane) = (one(bench), one(&held));
    let keys = |bench: &Bench| Lane::new(bench, Some(KEYS));
    let (mut keyed_lane, mut keyed_held_lane) = (keys(&keyed), keys(&keyed_held));
    let mut reached = 0;
    for nth in 0..WINDOWS {
        reached += window;
        print!("{reached:8} {:7.1}", free_lane.window(bench, window).await);
        print!(" {:7.1}", held_lane.window(&held, window).await);
        if nth < HAND {
            hand.add(&Fill::of(window)).await;
            let plan = Plan::new(BATCH, 1, window);
            let drained = by_hand(&hand.pool, Kind::Unmarked, plan).await;
            print!(" {:8.1}", checked(&drained, window));
        } else {
            print!(" {:8}", "");
        }
        if nth < KEYED {
            let few = window / 5;
            print!(" {:11.1}", keyed_lane.window(&keyed, few).await);
            print!(" {:11.1}", keyed_held_lane.window(&keyed_held, few).await);
        }
        println!();
    }
    println!(
        "held at the end ÷ free: {:.2}",
        held_lane.end() / free_lane.end()
    );
    println!(
        "keyed, held at the end ÷ free: {:.2}",
        keyed_held_lane.end() / keyed_lane.end()
    );
    for connection in old {
        connection.close().await.expect("closed");
    }
}

/// One store that goes on from window to window.
struct Lane {
    store: outbox_sqlx::PgStore,
    key: Option<&'static str>,
    rates: Vec<f64>,
}

impl Lane {
    fn new(bench: &Bench, key: Option<&'static str>) -> Self {
        Self {
            store: bench.sqlx(),
            key,
            rates: Vec::new(),
        }
    }

    /// Enqueues and drains one window.
    async fn window(&mut self, bench: &Bench, events: u32) -> f64 {
        bench
            .add(&Fill {
                key: self.key,
                ..Fill::of(events)
            })
            .await;
        let plan = Plan::new(BATCH, 1, events);
        let drained = by_store(|| self.store.clone(), plan).await;
        let rate = checked(&drained, events);
        if self.key.is_some() {
            check::ordered(&drained.log);
        }
        self.rates.push(rate);
        rate
    }

    /// The median of the last windows.
    fn end(&self) -> f64 {
        let last = self.rates.len() - self.rates.len().min(10) / 2;
        median(self.rates[last..].to_vec())
    }
}

fn checked(drained: &Drained, events: u32) -> f64 {
    check::once(&drained.log, events);
    rate(events, drained.took)
}

/// A transaction with a snapshot, which stays open as long as the connection.
async fn old_transaction(bench: &Bench) -> PgConnection {
    let mut connection = PgConnection::connect(&bench.url).await.expect("connected");
    for statement in [
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "SELECT count(*) FROM outbox_destinations",
    ] {
        connection.execute(statement).await.expect("executed");
    }
    connection
}
