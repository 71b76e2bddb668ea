//! The relay with a transport that does nothing, beside a loop of claim and settle on the same
//! store.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use outbox_core::{ClaimRequest, OutboxStore, Outcome, RelayBuilder, Settlement};
use tokio::sync::oneshot::Receiver;

use crate::setup::{Bench, Nothing, median, rate, relay, store};

const ROUNDS: usize = 3;

pub(crate) async fn run(bench: &Bench, events: u32) {
    println!("\nthroughput: {events} events of 400 bytes, thousand events/s, median of {ROUNDS}");
    println!("batch  loops    store    relay  ratio");
    for batch in [100, 1_000] {
        for loops in [1, 2] {
            let (mut by_store, mut by_relay) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                bench.fill(events, 1).await;
                by_store.push(rate(events, drain(bench, batch, loops).await));
                bench.fill(events, 1).await;
                let (nothing, done) = Nothing::until(events);
                let nothing = Arc::new(nothing);
                let build = || relay(store(&bench.pool), Arc::clone(&nothing), batch);
                let took = deliver(build, done, events, loops).await;
                by_relay.push(rate(events, took));
            }
            let (by_store, by_relay) = (median(by_store), median(by_relay));
            println!(
                "{batch:5} {loops:6} {by_store:8.1} {by_relay:8.1} {:6.2}",
                by_relay / by_store
            );
        }
    }
}

pub(crate) async fn drain(bench: &Bench, batch: u32, loops: usize) -> Duration {
    let begun = Instant::now();
    let tasks = (0..loops).map(|_| {
        let store = store(&bench.pool);
        tokio::spawn(async move {
            let rows = NonZeroU32::new(batch).expect("rows");
            loop {
                let request = ClaimRequest::new(rows, Duration::from_secs(60));
                let claim = store.claim(&request).await.expect("claimed");
                let published: Vec<Settlement> = claim
                    .events
                    .iter()
                    .map(|claimed| Settlement::new(claimed.lease, Outcome::Published))
                    .collect();
                if published.is_empty() {
                    return;
                }
                store.settle(&published).await.expect("settled");
            }
        })
    });
    for task in join_all(tasks).await {
        task.expect("a loop");
    }
    begun.elapsed()
}

/// Runs relays until the transport says that it is done.
pub(crate) async fn deliver(
    build: impl Fn() -> RelayBuilder,
    done: Receiver<()>,
    events: u32,
    loops: usize,
) -> Duration {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let begun = Instant::now();
    let tasks: Vec<_> = (0..loops)
        .map(|_| {
            let relay = build().build().expect("valid");
            let mut stopped = stopped.clone();
            tokio::spawn(async move {
                let stop = async move { drop(stopped.wait_for(|stop| *stop).await) };
                relay.run(stop).await
            })
        })
        .collect();
    done.await.expect("delivered");
    stop.send_replace(true);
    let mut published = 0;
    for task in join_all(tasks).await {
        published += task.expect("a relay").published;
    }
    assert_eq!(published, u64::from(events));
    begun.elapsed()
}
