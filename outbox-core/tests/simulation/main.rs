//! Relays over a store, a transport and a runtime that misbehave as a seed decides.
//!
//! Everything runs in one thread on simulated time: producers, one to three relays that are killed,
//! shut down, aborted and started again, store calls that are slow, fail, or lose their answer,
//! outages, transports that fail in every way, a process that stands still, a database clock that
//! jumps. Then the faults end, and nothing may be missing.
//!
//! `OUTBOX_SIM_SEEDS` is the number of seeds, `OUTBOX_SIM_FIRST` the first of them;
//! `OUTBOX_SIM_SEED` runs one and prints what happened.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod chaos;
mod ledger;
#[path = "../sim/mod.rs"]
mod sim;
mod store;
mod transport;
mod world;

use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ledger::Told;
use world::World;

/// What an ordinary test run has time for; `scripts/simulate` runs ten times as many, or a million.
const SEEDS: u64 = 2_000;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.replace('_', "")
            .parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}: no number")),
    )
}

/// Panics that belong to the play print nothing.
fn hush() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&transport::PLAYED) {
                usual(panic);
            }
        }));
    });
}

#[test]
fn every_seed_keeps_every_promise() {
    hush();
    if let Some(seed) = setting("OUTBOX_SIM_SEED") {
        let world = World::new(seed);
        world.ledger().tell(Told::Printed);
        world.play();
        return;
    }
    let first = setting("OUTBOX_SIM_FIRST").unwrap_or(0);
    let end = first + setting("OUTBOX_SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let failed = AtomicU64::new(u64::MAX);
    let work = || {
        while failed.load(Ordering::Relaxed) == u64::MAX {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            if catch_unwind(|| World::new(seed).play()).is_err() {
                failed.fetch_min(seed, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let seed = failed.into_inner();
    assert!(
        seed == u64::MAX,
        "seed {seed} fails; to replay it:\n\
         OUTBOX_SIM_SEED={seed} cargo test -p outbox-core --test simulation -- --nocapture every_seed"
    );
}

#[test]
fn a_seed_gives_the_same_play_twice() {
    hush();
    for seed in 0..20 {
        let plays = [(); 2].map(|()| {
            let world = World::new(seed);
            world.ledger().tell(Told::Digest);
            world.play();
            world.ledger().digest()
        });
        assert_eq!(plays[0], plays[1], "seed {seed}");
    }
}

#[test]
fn the_plays_meet_every_kind_of_fault() {
    hush();
    let mut met = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let world = World::new(seed);
        world.play();
        met.extend(world.ledger().met());
    }
    let expected = [
        "abort",
        "acked",
        "ambiguous",
        "answer lost",
        "clock jump",
        "dead",
        "freeze",
        "kill",
        "lease lost",
        "once",
        "outage",
        "panic",
        "replay",
        "rolled back",
        "shutdown",
        "taken over",
        "timed out",
    ];
    assert_eq!(met.into_iter().collect::<Vec<_>>(), expected);
}
