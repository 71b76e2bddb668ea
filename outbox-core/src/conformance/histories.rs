//! Random histories of several relays, producers and operators, compared with a model step by step.
//!
//! All periods end at half minutes and time moves by whole ones, so that a store whose clock runs
//! on by itself for some seconds decides like the model.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Harness;
use super::kit::{Must, claim, drain, request, stats};
use super::model::{Filter, Model, Row, Seconds};
use crate::{
    BlockedKeyPage, ClaimRequest, Claimed, DeadHeadPolicy, DeadLetter, DeadLetterFilter,
    DeadLetters, DeathReason, DestinationFilter, Destinations, EventId, Hold, Lease, LeaseToken,
    Maintenance, NewEvent, OutboxStore, Outcome, Page, Prune, Replay, Settlement,
};

/// The environment variable with the one seed to run.
const SEED: &str = "OUTBOX_CONFORMANCE_SEED";
const DESTS: [&str; 3] = ["d0", "d1", "d2"];
const KINDS: [&str; 2] = ["A", "B"];

pub async fn of_many_workers_match_the_model<H: Harness>(h: &Arc<H>) {
    let histories = u64::from(h.capabilities().histories);
    let seeds = match std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..histories,
    };
    for seed in seeds {
        let mut history = History::new(&**h, seed).await;
        for _ in 0..h.capabilities().steps {
            history.step().await;
        }
        history.finish().await;
    }
}

/// Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators" (2014), SplitMix64.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `end`.
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// Half a minute to nine and a half.
    fn period(&mut self) -> Seconds {
        30 + 60 * (self.next() % 10)
    }

    fn dest(&mut self) -> usize {
        self.below(DESTS.len())
    }
}

/// One history. Events go by their place in the order of enqueues, which is that of their numbers.
struct History<'a, H: Harness> {
    h: &'a H,
    workers: Vec<H::Store>,
    random: Random,
    model: Model,
    places: HashMap<EventId, i64>,
    /// Committed some steps later.
    late: Option<Late<H::Tx>>,
    /// Every lease that was ever given out: the store's, and with the place for its number.
    leases: Vec<(Lease, Lease)>,
    tokens: Vec<LeaseToken>,
    log: Log,
}

struct Late<T> {
    tx: T,
    rows: Vec<(i64, Row)>,
}

/// Tells a failing history.
struct Log {
    seed: u64,
    steps: Vec<String>,
}

impl Drop for Log {
    #[expect(clippy::print_stderr, reason = "a failing test says how to repeat it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.steps.len().saturating_sub(40);
            eprintln!("the last steps:\n{}", self.steps[last..].join("\n"));
            eprintln!("to repeat this history: {SEED}={}", self.seed);
        }
    }
}

const fn seconds(seconds: Seconds) -> Duration {
    Duration::from_secs(seconds)
}

impl<'a, H: Harness> History<'a, H> {
    async fn new(h: &'a H, seed: u64) -> Self {
        let mut workers = Vec::new();
        for _ in 0..3 {
            workers.push(h.open().await);
        }
        Self {
            h,
            workers,
            random: Random(seed),
            model: Model::default(),
            places: HashMap::new(),
            late: None,
            leases: Vec::new(),
            tokens: vec![LeaseToken::new()],
            log: Log {
                seed,
                steps: Vec::new(),
            },
        }
    }

    async fn step(&mut self) {
        let step = self.random.below(32);
        if !(5..=21).contains(&step) {
            self.commit_late().await;
        }
        match step {
            0..=4 => self.enqueue().await,
            5..=10 => self.claim().await,
            11 => self.claim_all().await,
            12..=18 => self.settle().await,
            19..=20 => self.extend().await,
            21 => self.release().await,
            22 => self.release_claim().await,
            23..=26 => self.advance().await,
            27 => self.hold().await,
            28 => self.set_policy().await,
            29 => self.replay().await,
            30 => self.discard_or_prune().await,
            _ => self.compare().await,
        }
    }

    fn say(&mut self, step: impl fmt::Display) {
        let now = self.model.now;
        self.log.steps.push(format!("{now:>6} s  {step}"));
    }

    fn worker(&mut self) -> usize {
        self.random.below(self.workers.len())
    }
}

/// Producers.
impl<H: Harness> History<'_, H> {
    async fn enqueue(&mut self) {
        let concurrent = self.h.capabilities().concurrent_transactions;
        let is_late = concurrent && self.random.one_in(4);
        let commits = !self.random.one_in(6);
        let mut list: Vec<NewEvent> = Vec::new();
        let mut rows = Vec::new();
        for _ in 0..=self.random.below(4) {
            let (dest, kind) = (self.random.dest(), self.random.below(KINDS.len()));
            let key = (!self.random.one_in(3)).then(|| self.random.next() % 3);
            let is_delayed = !is_late && self.random.one_in(5);
            let delay = if is_delayed { self.random.period() } else { 0 };
            let new = NewEvent::bytes(KINDS[kind], "x").to(DESTS[dest]);
            let new = match key {
                Some(key) => new.key(key),
                None => new,
            };
            let new = new.delay(seconds(delay));
            let place = i64::try_from(self.places.len()).unwrap_or(i64::MAX);
            self.places.insert(new.event_id(), place);
            list.push(new);
            rows.push((place, Row::new(dest, key, kind, self.model.now + delay)));
        }
        self.say(format_args!(
            "enqueue {rows:?}; commits: {commits}, late: {is_late}"
        ));
        let mut tx = self.h.begin().await;
        self.h.enqueue_all(&mut tx, list).await.must("enqueue");
        if !commits {
            self.h.rollback(tx).await;
        } else if is_late {
            self.late = Some(Late { tx, rows });
        } else {
            self.h.commit(tx).await;
            self.model.open.extend(rows);
        }
    }

    async fn commit_late(&mut self) {
        if let Some(Late { tx, rows }) = self.late.take() {
            self.say("commit late");
            self.h.commit(tx).await;
            self.model.open.extend(rows);
        }
    }
}

/// Relays.
impl<H: Harness> History<'_, H> {
    async fn claim(&mut self) {
        let period = self.random.period();
        let mut asked = request(1 + self.random.below(7));
        asked.lease = seconds(period);
        let mut filter = Filter::default();
        let dest = self.random.dest();
        match self.random.below(8) {
            0 => {
                let kind = self.random.below(KINDS.len());
                filter.kind = Some(kind);
                asked.event_types = Some(vec![KINDS[kind].to_owned()]);
            }
            1 => {
                filter.only = Some(dest);
                asked.destinations = DestinationFilter::Only(vec![DESTS[dest].to_owned()]);
            }
            2 => {
                filter.except = Some(dest);
                asked.destinations = DestinationFilter::Except(vec![DESTS[dest].to_owned()]);
            }
            3 => asked.bytes = u64::try_from(self.random.below(4)).unwrap_or(0),
            _ => {}
        }
        self.claim_as(&asked, &filter, period).await;
    }

    async fn claim_as(&mut self, asked: &ClaimRequest, filter: &Filter, lease: Seconds) -> usize {
        let worker = self.worker();
        let events = claim(&self.workers[worker], asked).await.events;
        let place = |claimed: &Claimed| self.places.get(&claimed.event.id).copied();
        let places: Vec<i64> = events.iter().filter_map(place).collect();
        self.say(format_args!(
            "worker {worker} claims {places:?} for {lease} s, {filter:?}"
        ));
        assert_eq!(
            places.len(),
            events.len(),
            "an event that was never enqueued"
        );
        assert!(places.is_sorted(), "events come by their numbers");
        let rows = usize::try_from(asked.rows.get()).unwrap_or(usize::MAX);
        assert!(events.len() <= rows, "more than asked for");
        let claims = places.iter().zip(&events);
        let claims: Vec<(i64, &Claimed)> = claims.map(|(&place, event)| (place, event)).collect();
        self.model.claimed(&claims, filter, lease);
        for (place, claimed) in claims {
            assert_eq!(claimed.lease.token, asked.token);
            self.leases
                .push((claimed.lease, Lease::new(place, asked.token)));
        }
        self.tokens.push(asked.token);
        events.len()
    }

    /// What the model could claim is claimed sooner or later.
    async fn claim_all(&mut self) {
        let period = self.random.period();
        let mut empty = 0;
        while empty < 20 && !self.model.claimable().is_empty() {
            let mut asked = request(50);
            asked.lease = seconds(period);
            let claimed = self.claim_as(&asked, &Filter::default(), period).await;
            empty = if claimed == 0 { empty + 1 } else { 0 };
        }
        let left = self.model.claimable();
        assert!(left.is_empty(), "{left:?} are due and no claim brings them");
    }

    /// A lease that was given out: mostly a young one.
    fn lease(&mut self) -> Option<(Lease, Lease)> {
        let window = if self.random.one_in(4) {
            usize::MAX
        } else {
            12
        };
        let from = self.leases.len().saturating_sub(window);
        let at = from + self.random.below(self.leases.len() - from);
        let &(mut lease, mut model) = self.leases.get(at)?;
        if self.random.one_in(12) {
            lease.token = LeaseToken::new();
            model.token = lease.token;
        }
        Some((lease, model))
    }

    fn outcome(&mut self) -> (Outcome, Seconds) {
        let period = self.random.period();
        let after = seconds(period);
        let text = "why".to_owned();
        match self.random.below(7) {
            0 => (Outcome::Retry { after, error: text }, period),
            1 => (
                Outcome::Defer {
                    after,
                    reason: text,
                },
                period,
            ),
            2 => (Outcome::Release, 0),
            3 | 4 => {
                let reason = DeathReason::Rejected;
                (
                    Outcome::Dead {
                        reason,
                        error: text,
                    },
                    0,
                )
            }
            _ => (Outcome::Published, 0),
        }
    }

    async fn settle(&mut self) {
        let mut batch = Vec::new();
        let mut settled = HashSet::new();
        let mut expected = Vec::new();
        for _ in 0..=self.random.below(5) {
            let Some((lease, model)) = self.lease() else {
                return;
            };
            if !settled.insert(lease.seq) {
                continue; // An event twice in one batch: no relay does it.
            }
            let (outcome, after) = self.outcome();
            let status = self.model.settled(model, &outcome, after);
            self.say(format_args!("settle {} {outcome:?}: {status:?}", model.seq));
            expected.push(status);
            batch.push(Settlement::new(lease, outcome));
        }
        let worker = self.worker();
        let answers = self.workers[worker].settle(&batch).await.must("settle");
        assert_eq!(answers, expected);
    }

    async fn extend(&mut self) {
        let Some((lease, model)) = self.lease() else {
            return;
        };
        let period = self.random.period();
        let expected = self.model.extended(model, period);
        self.say(format_args!(
            "extend {} by {period} s: {expected:?}",
            model.seq
        ));
        let worker = self.worker();
        let answers = self.workers[worker].extend(&[lease], seconds(period)).await;
        assert_eq!(answers.must("extend"), [expected]);
    }

    async fn release(&mut self) {
        let Some((lease, model)) = self.lease() else {
            return;
        };
        let expected = self.model.settled(model, &Outcome::Release, 0);
        self.say(format_args!("release {}: {expected:?}", model.seq));
        let worker = self.worker();
        let answers = self.workers[worker].release(&[lease]).await.must("release");
        assert_eq!(answers, [expected]);
    }

    /// Best effort: what it misses is released by the leases, which changes nothing else.
    async fn release_claim(&mut self) {
        let from = self.tokens.len().saturating_sub(8);
        let at = from + self.random.below(self.tokens.len() - from);
        let token = self.tokens[at];
        let most = self.model.claim_released(token);
        self.say(format_args!("release a claim: {most} rows"));
        let released = self.h.store().release_claim(token).await;
        let released = released.must("release_claim");
        assert!(released <= most, "{released} of {most} rows");
        let leases = self.leases.iter().map(|(lease, _)| *lease);
        let leases: Vec<Lease> = leases.filter(|lease| lease.token == token).collect();
        self.h.store().release(&leases).await.must("release");
    }
}

/// Time and operators.
impl<H: Harness> History<'_, H> {
    async fn advance(&mut self) {
        let minutes = 1 + u64::try_from(self.random.below(6)).unwrap_or(0);
        self.h.advance(seconds(60 * minutes)).await;
        self.model.now += 60 * minutes;
        self.say(format_args!("{minutes} minutes pass"));
    }

    async fn hold(&mut self) {
        let dest = self.random.dest();
        let reason = "why".to_owned();
        let hold = match self.random.below(5) {
            0 => {
                self.model.dests[dest].held = Some(None);
                Hold::Disabled { reason }
            }
            1 | 2 => {
                let period = self.random.period();
                self.model.held_for(dest, period);
                let period = seconds(period);
                Hold::For { period, reason }
            }
            _ => {
                self.model.dests[dest].held = None;
                Hold::Free
            }
        };
        self.say(format_args!("hold {dest}: {hold:?}"));
        self.h.store().hold(DESTS[dest], hold).await.must("hold");
    }

    async fn set_policy(&mut self) {
        let dest = self.random.dest();
        let policy = if self.random.one_in(3) {
            DeadHeadPolicy::Skip
        } else {
            DeadHeadPolicy::Block
        };
        self.say(format_args!("the policy of {dest} is {policy:?}"));
        self.model.policy_set(dest, policy);
        let set = self.h.store().set_dead_head_policy(DESTS[dest], policy);
        set.await.must("set_dead_head_policy");
    }

    fn letters(&mut self) -> (Option<usize>, DeadLetterFilter) {
        let dest = self.random.dest();
        if self.random.one_in(2) {
            (Some(dest), DeadLetterFilter::destination(DESTS[dest]))
        } else {
            (None, DeadLetterFilter::all())
        }
    }

    async fn replay(&mut self) {
        let (dest, filter) = self.letters();
        let rows = 1 + self.random.below(4);
        let mut replay = Replay::new(filter);
        replay.rows = u32::try_from(rows).unwrap_or(1);
        let expected = self.model.replayed(dest, rows);
        self.say(format_args!("replay {rows} of {dest:?}: {expected}"));
        let replayed = self.h.store().replay(&replay).await.must("replay");
        assert_eq!(replayed, expected);
    }

    async fn discard_or_prune(&mut self) {
        if self.random.one_in(2) {
            let (dest, filter) = self.letters();
            let expected = self.model.discarded(dest);
            self.say(format_args!("discard all of {dest:?}: {expected}"));
            let discarded = self.h.store().discard(&filter, 1_000, "why").await;
            assert_eq!(discarded.must("discard"), expected);
        } else {
            let age = self.random.period();
            let prune = Prune {
                published_after: Some(Duration::ZERO),
                dead_after: Some(seconds(age)),
                dedup_after: Some(Duration::ZERO),
                rows: 1_000,
            };
            let expected = self.model.pruned(age);
            self.say(format_args!("prune what is dead for {age} s: {expected}"));
            let pruned = self.h.store().prune(&prune).await.must("prune");
            assert_eq!(pruned.dead, expected);
        }
    }

    /// Everything that can be seen.
    async fn compare(&mut self) {
        self.say("compare");
        let stats = stats(self.h).await;
        let counts = [stats.pending, stats.claimed, stats.dead, stats.blocked_keys];
        let model = &self.model;
        let expected = [
            model.open.len(),
            model.leased(),
            model.dead.len(),
            model.blocked.len(),
        ];
        let expected = expected.map(|count| u64::try_from(count).unwrap_or(u64::MAX));
        assert_eq!(counts.map(|count| count.value), expected, "{stats:?}");

        let page = Page::after(i64::MIN, 1_000);
        let letters = self.h.store().list(&DeadLetterFilter::all(), &page).await;
        let letters = letters.must("list");
        let place = |letter: &DeadLetter| self.places.get(&letter.event.id).copied();
        let places: Vec<Option<i64>> = letters.iter().map(place).collect();
        let expected: Vec<Option<i64>> = model.dead.keys().map(|place| Some(*place)).collect();
        assert_eq!(places, expected);

        let page = BlockedKeyPage::default();
        let blocked = self
            .h
            .store()
            .blocked_keys(&page)
            .await
            .must("blocked_keys");
        let blocked = blocked.into_iter().map(|key| (key.destination, key.key));
        let expected = model.blocked.iter();
        let expected: Vec<(String, String)> = expected
            .map(|(dest, key)| (DESTS[*dest].to_owned(), key.to_string()))
            .collect();
        assert_eq!(blocked.collect::<Vec<_>>(), expected);
    }

    /// Lets everything go: what is open is delivered, and nothing is left.
    async fn finish(mut self) {
        self.commit_late().await;
        for dest in DESTS {
            let store = self.h.store();
            store.hold(dest, Hold::Free).await.must("hold");
            let skip = store.set_dead_head_policy(dest, DeadHeadPolicy::Skip);
            skip.await.must("set_dead_head_policy");
        }
        self.say("finish");
        self.h.advance(seconds(60 * 60)).await;
        let delivered = drain(self.h, 20).await.len();
        assert_eq!(delivered, self.model.open.len());
        let all = DeadLetterFilter::all();
        let discarded = self.h.store().discard(&all, 1_000, "the end").await;
        let expected = u64::try_from(self.model.dead.len()).unwrap_or(u64::MAX);
        assert_eq!(discarded.must("discard"), expected);
    }
}
