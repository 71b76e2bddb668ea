//! A backlog without keys: the stores beside loops by hand, and history beside deletion at once.

use crate::check;
use crate::hand::{Kind, by_hand, by_hand_through_diesel};
use crate::rounds::{Rounds, rounds};
use crate::setup::{Bench, Fill, rate};
use crate::worker::{Plan, by_store};

const ROUNDS: usize = 5;

#[derive(Clone, Copy)]
enum Side {
    Bare,
    Same,
    Sqlx,
    SameThroughDiesel,
    Diesel,
    Keeping,
}

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\ndrain: {events} events of 400 bytes, thousand events/s");
    println!("medians of {ROUNDS} rounds; ÷: the median of the rounds' ratios to bare, to same");
    println!("bare: a loop by hand; same: one with the store's guarantees; both through sqlx");
    println!("by diesel: as same, through diesel");
    println!(
        "batch  workers    bare    same    sqlx ÷bare ÷same  by diesel  diesel ÷by diesel ÷bare"
    );
    for batch in [100, 1_000] {
        for workers in [1, 2, 4] {
            let plan = Plan::new(batch, workers, events);
            let sides = [
                Side::Bare,
                Side::Same,
                Side::Sqlx,
                Side::SameThroughDiesel,
                Side::Diesel,
            ];
            let all = compare(bench, plan, sides).await;
            let [bare, same, sqlx, by_diesel, diesel] = all.rates();
            println!(
                "{batch:5} {workers:8} {bare:7.1} {same:7.1} {sqlx:7.1} {:5.2} {:5.2} {by_diesel:10.1} {diesel:7.1} {:10.2} {:5.2}",
                all.ratio(2, 0),
                all.ratio(2, 1),
                all.ratio(4, 3),
                all.ratio(4, 0)
            );
        }
    }
    println!("batch  workers  delete at once  keep  ratio (sqlx)");
    for batch in [100, 1_000] {
        let plan = Plan::new(batch, 2, events);
        let both = compare(bench, plan, [Side::Sqlx, Side::Keeping]).await;
        let [gone, kept] = both.rates();
        println!(
            "{batch:5} {:8} {gone:15.1} {kept:5.1} {:6.2}",
            2,
            both.ratio(1, 0)
        );
    }
}

async fn compare<const N: usize>(bench: &Bench, plan: Plan, sides: [Side; N]) -> Rounds<N> {
    rounds(ROUNDS, async |side| measure(bench, plan, sides[side]).await).await
}

async fn measure(bench: &Bench, plan: Plan, side: Side) -> f64 {
    bench.fill(&Fill::of(plan.events)).await;
    let drained = match side {
        Side::Bare => by_hand(&bench.pool, Kind::Bare, plan).await,
        Side::Same => by_hand(&bench.pool, Kind::Same, plan).await,
        Side::SameThroughDiesel => by_hand_through_diesel(&bench.diesel, plan).await,
        Side::Sqlx => by_store(|| bench.sqlx(), plan).await,
        Side::Diesel => by_store(|| bench.diesel(), plan).await,
        Side::Keeping => by_store(|| bench.keeping(), plan).await,
    };
    check::once(&drained.log, plan.events);
    rate(plan.events, drained.took)
}
