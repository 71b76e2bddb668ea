//! What an idle relay costs.

use std::time::Duration;

use outbox_core::TokioTimer;
use outbox_sqlx::sqlx::query_scalar;

use crate::setup::{Bench, Nothing, execute, relay, store};

const INTERVALS: u32 = 20;

pub(crate) async fn run(bench: &Bench) {
    execute(&bench.pool, "TRUNCATE outbox_events RESTART IDENTITY").await;
    let store = store(&bench.pool);
    let (nothing, _done) = Nothing::until(1);
    let relay = relay(store.clone(), nothing, 64)
        .wake(store.wake(TokioTimer))
        .build()
        .expect("valid");
    let running = tokio::spawn(relay.run(std::future::pending()));
    // Until it has come down to its poll interval.
    tokio::time::sleep(Duration::from_secs(5)).await;
    execute(&bench.pool, "SELECT pg_stat_statements_reset()").await;
    let before = cpu_ticks();
    tokio::time::sleep(Duration::from_secs(1) * INTERVALS).await;
    let ticks = cpu_ticks() - before;
    let queries: i64 = query_scalar(
        "SELECT COALESCE(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query !~ 'pg_stat_'",
    )
    .fetch_one(&bench.pool)
    .await
    .expect("counted");
    running.abort();
    println!(
        "\nidle: {INTERVALS} s at a poll interval of 1 s (shortened at random by up to a fifth), with \
         a listener: {queries} queries, {} ms of CPU",
        ticks * 10
    );
}

/// User and system time in hundredths of a second: fields 14 and 15 of `proc(5)`'s `stat`.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}
