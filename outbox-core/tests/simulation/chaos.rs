//! The players: producers, relays that come and go, and whoever breaks things.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use outbox_core::{
    DeadLetterFilter, DeadLetters, Enqueue, EventId, NewEvent, Replay, Report, Timer, Trigger,
};

use super::world::{DRAIN, MAX_ATTEMPTS, World};

async fn up_to(world: &World, millis: u64) {
    let period = Duration::from_millis(world.sim.below(millis));
    world.sim.sleep(period).await;
}

/// Transactions that stay open for a while and commit, or do not.
pub(crate) async fn producer(world: Arc<World>, producer: u64) {
    for _ in 0..world.cast.transactions {
        up_to(&world, 3_000).await;
        let mut tx = world.store.begin();
        let mut seqs = Vec::new();
        for _ in 0..=world.sim.below(4) {
            let (event, max_attempts) = event(&world);
            let seq = world.ledger().enqueued(&event, max_attempts);
            world.store.enqueue(&mut tx, event).await.unwrap();
            seqs.push(seq);
            if world.sim.once_in(4) {
                up_to(&world, 500).await;
            }
        }
        if world.sim.once_in(6) {
            world.note(format_args!("producer {producer} rolls {seqs:?} back"));
            world.meet("rolled back");
            drop(tx);
        } else {
            world.note(format_args!("producer {producer} commits {seqs:?}"));
            world.ledger().committed(&seqs);
            tx.commit();
        }
    }
}

/// An event with its limit of attempts.
fn event(world: &World) -> (NewEvent, u32) {
    let sim = &world.sim;
    let [high, low] = [sim.below(u64::MAX), sim.below(u64::MAX)].map(u64::to_be_bytes);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high);
    bytes[8..].copy_from_slice(&low);
    let destination = format!("d{}", sim.below(world.cast.destinations));
    let mut event = NewEvent::bytes("T", "x")
        .to(destination)
        .id(EventId::from_bytes(bytes));
    if !sim.once_in(3) {
        event = event.key(sim.below(world.cast.keys));
    }
    if sim.once_in(5) {
        event = event.delay(Duration::from_millis(sim.below(5_000)));
    }
    if sim.once_in(8) {
        event = event.expires_in(Duration::from_millis(1_000 + sim.below(8_000)));
    }
    if sim.once_in(4) {
        let limit = 1 + u32::try_from(sim.below(3)).unwrap();
        return (event.max_attempts(limit), limit);
    }
    (event, MAX_ATTEMPTS)
}

/// A relay that is started again after each of its ends, until the faults are over.
pub(crate) async fn relay(world: Arc<World>, number: u64) {
    let mut life = 0;
    while !world.healed() {
        let relay = world.relay(number * 1_000 + life);
        life += 1;
        world.note(format_args!("relay {number} starts"));
        if world.sim.once_in(8) {
            world.meet("once");
            let run = async { relay.run_once().await.unwrap_or_default() };
            ends(&world, run, Duration::from_secs(300)).await;
            continue;
        }
        let (stop, stopped) = Trigger::new();
        let (abort, aborted) = Trigger::new();
        let mut run = Box::pin(relay.run_until(stopped, aborted));
        let period = Duration::from_millis(200 + world.sim.below(12_000));
        if let Either::Left((report, _)) = select(&mut run, world.sim.sleep(period)).await {
            panic!("relay {number} ends unasked: {report:?}");
        }
        match world.sim.below(3) {
            0 => {
                world.note(format_args!("relay {number} is killed"));
                world.meet("kill");
                drop(run);
            }
            1 => {
                world.note(format_args!("relay {number} is asked to stop"));
                world.meet("shutdown");
                stop.raise();
                ends(&world, run, DRAIN + GRACE).await;
            }
            _ => {
                world.note(format_args!(
                    "relay {number} is asked to stop, and then aborted"
                ));
                world.meet("abort");
                stop.raise();
                let patience = Duration::from_millis(world.sim.below(3_000));
                if let Either::Right((_, run)) = select(run, world.sim.sleep(patience)).await {
                    abort.raise();
                    ends(&world, run, GRACE).await;
                }
            }
        }
        up_to(&world, 2_000).await;
    }
}

/// How long a relay waits for calls to its store at its end.
const GRACE: Duration = Duration::from_secs(5);

/// A relay that was asked to stop does so in time.
async fn ends(world: &World, run: impl Future<Output = Report>, within: Duration) {
    let (asked, frozen) = (world.sim.now(), world.frozen());
    let run = pin!(run);
    let limit = world.sim.sleep(Duration::from_secs(600));
    let Either::Left((report, _)) = select(run, limit).await else {
        panic!("a relay never ends");
    };
    let took = world.sim.now() - asked;
    let stood_still = world.frozen() - frozen;
    assert!(took <= within + stood_still, "a relay ends after {took:?}");
    world.note(format_args!("relay ends: {report:?}"));
}

/// Breaks things, and now and then plays the operator.
pub(crate) async fn director(world: Arc<World>) {
    loop {
        up_to(&world, 4_000).await;
        if world.healed() {
            return;
        }
        match world.sim.below(5) {
            0 => {
                world.note(format_args!("the database goes down"));
                world.meet("outage");
                world.set_down(true);
                up_to(&world, world.cast.outage_millis).await;
                world.set_down(false);
                world.note(format_args!("the database is up"));
            }
            1 if world.cast.clocks_break => {
                let millis = world.sim.below(15_000);
                world.note(format_args!("the process stands still for {millis} ms"));
                world.meet("freeze");
                world.freeze(millis);
            }
            2 if world.cast.clocks_break => {
                let millis = world.sim.below(20_000);
                world.note(format_args!("the database's clock jumps by {millis} ms"));
                world.meet("clock jump");
                world.jump(millis);
            }
            3 => {
                let replay = Replay::new(DeadLetterFilter::all());
                let replayed = world.store.replay(&replay).await.unwrap();
                world.note(format_args!("{replayed} dead letters are replayed"));
                if replayed > 0 {
                    world.meet("replay");
                }
            }
            _ => {}
        }
    }
}
