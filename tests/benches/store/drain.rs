//! A backlog without keys: the stores beside loops by hand, and history beside deletion at once.

use crate::check;
use crate::hand::{Kind, by_hand};
use crate::setup::{Bench, Fill, median, rate};
use crate::worker::{Plan, by_store};

const ROUNDS: usize = 3;

#[derive(Clone, Copy)]
enum Side {
    Bare,
    Same,
    Sqlx,
    Diesel,
    Keeping,
}

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\ndrain: {events} events of 400 bytes, thousand events/s, median of {ROUNDS}");
    println!("bare: a loop by hand; same: one with the store's guarantees; ÷: to bare, to same");
    println!("batch  workers    bare    same    sqlx ÷bare ÷same  diesel ÷bare ÷same");
    for batch in [100, 1_000] {
        for workers in [1, 2, 4] {
            let plan = Plan::new(batch, workers, events);
            let sides = [Side::Bare, Side::Same, Side::Sqlx, Side::Diesel];
            let [bare, same, sqlx, diesel] = compare(bench, plan, sides).await;
            println!(
                "{batch:5} {workers:8} {bare:7.1} {same:7.1} {sqlx:7.1} {:5.2} {:5.2} {diesel:7.1} {:5.2} {:5.2}",
                sqlx / bare,
                sqlx / same,
                diesel / bare,
                diesel / same
            );
        }
    }
    println!("batch  workers  delete at once  keep  ratio (sqlx)");
    for batch in [100, 1_000] {
        let plan = Plan::new(batch, 2, events);
        let [gone, kept] = compare(bench, plan, [Side::Sqlx, Side::Keeping]).await;
        println!(
            "{batch:5} {:8} {gone:15.1} {kept:5.1} {:6.2}",
            2,
            kept / gone
        );
    }
}

/// The sides take turns, so that what disturbs one sample does not decide.
async fn compare<const N: usize>(bench: &Bench, plan: Plan, sides: [Side; N]) -> [f64; N] {
    let mut rates: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..ROUNDS {
        for turn in 0..N {
            let side = (round + turn) % N;
            rates[side].push(measure(bench, plan, sides[side]).await);
        }
    }
    rates.map(median)
}

async fn measure(bench: &Bench, plan: Plan, side: Side) -> f64 {
    bench.fill(&Fill::of(plan.events)).await;
    let drained = match side {
        Side::Bare => by_hand(&bench.pool, Kind::Bare, plan).await,
        Side::Same => by_hand(&bench.pool, Kind::Same, plan).await,
        Side::Sqlx => by_store(|| bench.sqlx(), plan).await,
        Side::Diesel => by_store(|| bench.diesel(), plan).await,
        Side::Keeping => by_store(|| bench.keeping(), plan).await,
    };
    check::once(&drained.log, plan.events);
    rate(plan.events, drained.took)
}
