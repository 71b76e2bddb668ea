//! Relays, operators and producers, each with a store and a pool of its own, on the same few rows at
//! once, in different orders.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outbox_core::{
    ClaimRequest, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason, DestinationFilter,
    Destinations, Error, ErrorKind, Hold, Lease, Maintenance, NewEvent, OutboxStore, Outcome,
    Prune, Replay, Retention, Settlement,
};

use crate::at::At;

const ROUNDS: usize = 60;
const EACH: u64 = 5;
const DESTINATIONS: u64 = 3;
const KEYS: u64 = 6;
const DEDUP_KEYS: u64 = 60;

/// A store that a crowd works with.
pub(crate) trait Subject:
    At + OutboxStore + DeadLetters + Destinations + Maintenance + Clone + 'static
{
    type Connection: Send + 'static;

    fn connect(url: &str) -> impl Future<Output = Self::Connection> + Send;

    /// Stores events in a transaction.
    fn produce(
        &self,
        conn: &mut Self::Connection,
        events: Vec<NewEvent>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Works until everybody has made all rounds; returns how many calls failed because others were in the
/// way. All connections are given up by then.
pub(crate) async fn works<S: Subject>(url: &str) -> usize {
    let store = S::at(url, 1, Retention::Keep).await;
    let policy = DeadHeadPolicy::Block;
    store.set_dead_head_policy("d0", policy).await.expect("set");
    let bag = Bag::default();
    let mut all = tokio::task::JoinSet::new();
    for n in 0..EACH {
        // Of relays, some keep what they publish, and some don't.
        let retention = match n % 2 {
            0 => Retention::Keep,
            _ => Retention::DeleteAtOnce,
        };
        let dice = |kind: u64| Dice(0x9E37_79B9_7F4A_7C15 ^ (kind * 100 + n + 1));
        all.spawn(relay(S::at(url, 2, retention).await, bag.clone(), dice(1)));
        all.spawn(operator(S::at(url, 2, retention).await, dice(2)));
        let conn = S::connect(url).await;
        all.spawn(producer(store.clone(), conn, dice(3)));
    }
    all.join_all().await.into_iter().sum()
}

/// Leases that somebody claimed, for everybody to use.
type Bag = Arc<Mutex<Vec<Lease>>>;

async fn relay<S: Subject>(store: S, bag: Bag, mut dice: Dice) -> usize {
    let mut conflicts = 0;
    for _ in 0..ROUNDS {
        let lease = Duration::from_millis([1, 20, 60_000][dice.of(3)]);
        let rows = NonZeroU32::new(dice.number(15) + 1).expect("rows");
        let mut request = ClaimRequest::new(rows, lease);
        if dice.of(3) == 0 {
            request.destinations = DestinationFilter::Except(vec![dice.destination()]);
        }
        match store.claim(&request).await {
            Ok(claim) => keep(&bag, claim.events.iter().map(|one| one.lease).collect()),
            Err(error) => conflicts += conflict(&error),
        }
        let some = take(&bag, &mut dice);
        let end = match dice.of(6) {
            0 | 1 => store.extend(&some, lease).await.map(drop),
            2 => store.release(&some).await.map(drop),
            3 if !some.is_empty() => store.release_claim(some[0].token).await.map(drop),
            _ => {
                let settle = |lease| Settlement::new(lease, dice.outcome());
                let batch: Vec<_> = some.into_iter().map(settle).collect();
                store.settle(&batch).await.map(drop)
            }
        };
        conflicts += end.err().map_or(0, |error| conflict(&error));
    }
    conflicts
}

async fn operator(store: impl Subject, mut dice: Dice) -> usize {
    let mut conflicts = 0;
    for _ in 0..ROUNDS {
        let letters = match dice.of(2) {
            0 => DeadLetterFilter::all(),
            _ => DeadLetterFilter::destination(dice.destination()),
        };
        let rows = dice.number(20) + 1;
        let done = match dice.of(5) {
            0 | 1 => {
                let mut replay = Replay::new(letters);
                replay.rows = rows;
                store.replay(&replay).await.map(drop)
            }
            2 => store
                .discard(&letters, rows / 4 + 1, "a test")
                .await
                .map(drop),
            3 => {
                let mut prune = Prune::default();
                prune.published_after = Some(Duration::ZERO);
                prune.dead_after = (dice.of(4) == 0).then_some(Duration::ZERO);
                prune.dedup_after = Some(Duration::ZERO);
                prune.rows = rows;
                store.prune(&prune).await.map(drop)
            }
            _ => {
                let hold = Hold::For {
                    period: Duration::from_millis(2),
                    reason: "429".to_owned(),
                };
                store.hold(&dice.destination(), hold).await
            }
        };
        conflicts += done.err().map_or(0, |error| conflict(&error));
    }
    conflicts
}

async fn producer<S: Subject>(store: S, mut conn: S::Connection, mut dice: Dice) -> usize {
    let mut conflicts = 0;
    for _ in 0..ROUNDS {
        let events = (0..30).map(|_| dice.event()).collect();
        let stored = store.produce(&mut conn, events).await;
        conflicts += stored.err().map_or(0, |error| conflict(&error));
    }
    conflicts
}

/// One, where others were in the way.
fn conflict(error: &Error) -> usize {
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
    1
}

fn keep(bag: &Bag, leases: Vec<Lease>) {
    let mut bag = bag.lock().unwrap_or_else(PoisonError::into_inner);
    bag.extend(leases);
    let excess = bag.len().saturating_sub(40);
    bag.drain(..excess);
}

/// Some of the leases, in any order; they stay for others.
fn take(bag: &Bag, dice: &mut Dice) -> Vec<Lease> {
    let mut leases = bag.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut taken = Vec::new();
    while taken.len() < 30 && !leases.is_empty() {
        let place = dice.of(leases.len());
        taken.push(leases.swap_remove(place));
    }
    taken
}

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn number(&mut self, sides: u64) -> u32 {
        u32::try_from(self.next() % sides).expect("a small number")
    }

    fn of(&mut self, sides: usize) -> usize {
        self.number(sides as u64) as usize
    }

    fn destination(&mut self) -> String {
        format!("d{}", self.number(DESTINATIONS))
    }

    fn event(&mut self) -> NewEvent {
        let mut event = NewEvent::bytes("T", "x").to(self.destination());
        if self.of(2) == 0 {
            event = event.key(format!("k{}", self.number(KEYS)));
        }
        if self.of(2) == 0 {
            event = event.dedup_key(format!("once {}", self.number(DEDUP_KEYS)));
        }
        if self.of(8) == 0 {
            event = event.delay(Duration::from_millis(1));
        }
        event
    }

    fn outcome(&mut self) -> Outcome {
        let (after, error) = (Duration::from_millis(1), "500".to_owned());
        match self.of(8) {
            0 | 1 => Outcome::Retry { after, error },
            2 | 3 => Outcome::Defer {
                after,
                reason: error,
            },
            4 => Outcome::Release,
            5 | 6 => Outcome::Dead {
                reason: DeathReason::Gone,
                error,
            },
            _ => Outcome::Published,
        }
    }
}
