//! The relay under everything at once, from seeds: slow, failing, panicking and hanging transports,
//! a store that is slow, fails before or after its work and goes down for minutes, relays that are
//! killed, stopped and aborted at any point, and virtual time.
//!
//! What must hold for every seed: nothing is lost, events of a key are received for the first time in
//! order (a lost lease may repeat one later), no event or key is delivered twice at once, attempts are
//! bounded, every run ends after its signal.
//!
//! `OUTBOX_SIM_SEEDS=20000` runs more seeds; `OUTBOX_SIM_SEED=17` runs one, as a failure says.

#![expect(clippy::unwrap_used, reason = "tests")]

mod random;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use world::World;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async { World::new(seed).live().await });
}

#[test]
fn nothing_is_lost_whatever_happens() {
    let one = number("OUTBOX_SIM_SEED");
    let seeds = number("OUTBOX_SIM_SEEDS").unwrap_or(300);
    let range = one.map_or(0..seeds, |seed| seed..seed + 1);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // The transport's own panics are part of the game.
        if info.payload().downcast_ref::<&str>() != Some(&"simulated") {
            hook(info);
        }
    }));
    for seed in range {
        if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
            panic!("seed {seed} failed; replay it with OUTBOX_SIM_SEED={seed}");
        }
    }
}
