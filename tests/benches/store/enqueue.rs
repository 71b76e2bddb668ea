//! Enqueues in the caller's transaction beside inserts of the same rows by hand.

use std::time::{Duration, Instant};

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures::future::join;
use outbox_core::Enqueue;
use outbox_sqlx::sqlx::{Connection, PgConnection};

use crate::diesel_inserts;
use crate::inserts::{self, BUSINESS, Columns, MANY, event};
use crate::setup::{Bench, median, micros};

/// Rows of a bulk insert.
const BULKS: [usize; 2] = [100, 1_000];

/// What was measured of one side.
#[derive(Default)]
struct Times {
    call: Vec<f64>,
    transaction: Vec<f64>,
}

impl Times {
    fn add(&mut self, call: Duration, transaction: Duration) {
        self.call.push(micros(call));
        self.transaction.push(micros(transaction));
    }
}

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\nenqueue: events of 400 bytes, by hand and through the store in turns");
    println!("median µs of the call, and of the transaction with a business row");
    println!("                  by hand: call, all; store: call, all; ratios");
    bench.execute(BUSINESS).await;
    let mut sqlx = PgConnection::connect(&bench.url).await.expect("connected");
    let mut diesel = bench.diesel.get().await.expect("connected");
    let events = usize::try_from(events).expect("few");
    bench.clear().await;
    report("sqlx, 1", by_sqlx(bench, &mut sqlx, 1, events / 5).await);
    report(
        "diesel, 1",
        by_diesel(bench, &mut diesel, 1, events / 5).await,
    );
    for rows in BULKS {
        let rounds = (events / rows).max(60);
        bench.clear().await;
        report(
            &format!("sqlx, {rows}"),
            by_sqlx(bench, &mut sqlx, rows, rounds).await,
        );
        bench.clear().await;
        report(
            &format!("diesel, {rows}"),
            by_diesel(bench, &mut diesel, rows, rounds).await,
        );
    }
    ways(bench, &mut sqlx, &mut diesel, events / 5).await;
    bench.clear().await;
}

/// By hand, and by the store.
async fn by_sqlx(bench: &Bench, conn: &mut PgConnection, rows: usize, rounds: usize) -> [Times; 2] {
    let store = bench.sqlx();
    let mut times = [Times::default(), Times::default()];
    for round in 0..2 * rounds {
        let hand = columns(rows);
        let mut events: Vec<_> = (0..rows).map(|_| event()).collect();
        let begun = Instant::now();
        let mut tx = conn.begin().await.expect("begun");
        inserts::business(&mut tx).await;
        let calling = Instant::now();
        match (by_hand(round), rows) {
            (true, 1) => inserts::one(&mut tx, &hand[0]).await,
            (true, _) => inserts::many(&mut tx, MANY, &hand).await,
            (false, 1) => {
                let event = events.pop().expect("one");
                store.enqueue(&mut tx, event).await.expect("enqueued");
            }
            (false, _) => {
                let all = store.enqueue_all(&mut tx, events).await.expect("enqueued");
                assert_eq!(all.len(), rows);
            }
        }
        let call = calling.elapsed();
        tx.commit().await.expect("committed");
        times[usize::from(!by_hand(round))].add(call, begun.elapsed());
    }
    stored(bench, rows * rounds * 2).await;
    times
}

async fn by_diesel(
    bench: &Bench,
    conn: &mut AsyncPgConnection,
    rows: usize,
    rounds: usize,
) -> [Times; 2] {
    let store = bench.diesel();
    let before = bench.number("SELECT count(*) FROM outbox_events").await;
    let mut times = [Times::default(), Times::default()];
    for round in 0..2 * rounds {
        let hand = columns(rows);
        let mut events: Vec<_> = (0..rows).map(|_| event()).collect();
        let begun = Instant::now();
        conn.batch_execute("BEGIN").await.expect("begun");
        diesel_inserts::business_row(conn).await.expect("inserted");
        let calling = Instant::now();
        match (by_hand(round), rows) {
            (true, 1) => diesel_inserts::one(conn, &hand[0]).await,
            (true, _) => diesel_inserts::many(conn, &hand).await,
            (false, 1) => {
                let event = events.pop().expect("one");
                store.enqueue(conn, event).await.expect("enqueued");
            }
            (false, _) => {
                let all = store.enqueue_all(conn, events).await.expect("enqueued");
                assert_eq!(all.len(), rows);
            }
        }
        let call = calling.elapsed();
        conn.batch_execute("COMMIT").await.expect("committed");
        times[usize::from(!by_hand(round))].add(call, begun.elapsed());
    }
    stored(
        bench,
        usize::try_from(before).expect("few") + rows * rounds * 2,
    )
    .await;
    times
}

/// Sides take turns, and so does who begins.
const fn by_hand(round: usize) -> bool {
    matches!(round % 4, 0 | 3)
}

fn columns(rows: usize) -> Vec<Columns> {
    (0..rows).map(|_| Columns::new()).collect()
}

async fn stored(bench: &Bench, rows: usize) {
    let stored = bench.number("SELECT count(*) FROM outbox_events").await;
    assert_eq!(usize::try_from(stored), Ok(rows));
}

fn report(what: &str, [hand, store]: [Times; 2]) {
    let [hand_call, hand_all] = [hand.call, hand.transaction].map(median);
    let [call, all] = [store.call, store.transaction].map(median);
    println!(
        "{what:>16} {hand_call:8.0} {hand_all:8.0} {call:8.0} {all:8.0} {:6.2} {:6.2}",
        call / hand_call,
        all / hand_all
    );
}

/// A business row and an event, in the ways that a producer has.
async fn ways(
    bench: &Bench,
    sqlx: &mut PgConnection,
    diesel: &mut AsyncPgConnection,
    rounds: usize,
) {
    let (by_sqlx, by_diesel) = (bench.sqlx(), bench.diesel());
    let mut times: [Vec<f64>; 4] = std::array::from_fn(|_| Vec::new());
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut tx = sqlx.begin().await.expect("begun");
        inserts::business(&mut tx).await;
        by_sqlx.enqueue(&mut tx, event()).await.expect("enqueued");
        tx.commit().await.expect("committed");
        times[0].push(micros(begun.elapsed()));

        let begun = Instant::now();
        diesel.batch_execute("BEGIN").await.expect("begun");
        diesel_inserts::business_row(diesel)
            .await
            .expect("inserted");
        by_diesel.enqueue(diesel, event()).await.expect("enqueued");
        diesel.batch_execute("COMMIT").await.expect("committed");
        times[1].push(micros(begun.elapsed()));

        let begun = Instant::now();
        diesel.batch_execute("BEGIN").await.expect("begun");
        let mut shared = &*diesel;
        let (row, enqueued) = join(
            diesel_inserts::business_row(&*diesel),
            by_diesel.enqueue(&mut shared, event()),
        )
        .await;
        row.expect("inserted");
        enqueued.expect("enqueued");
        diesel.batch_execute("COMMIT").await.expect("committed");
        times[2].push(micros(begun.elapsed()));

        let begun = Instant::now();
        inserts::both(sqlx, &Columns::new()).await;
        times[3].push(micros(begun.elapsed()));
    }
    let [sqlx, diesel, pipelined, one] = times.map(median);
    println!("a business row and an event, from BEGIN to COMMIT, µs:");
    println!("  one after the other: sqlx {sqlx:.0}, diesel {diesel:.0}");
    println!(
        "  pipelined by diesel: {pipelined:.0}; one statement by hand, without BEGIN: {one:.0}"
    );
}
