//! One simulated world.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::future::{BoxFuture, Either, join_all, select};
use outbox_core::{
    Backoff, Claim, ClaimRequest, Clock, DeadLetterFilter, DeadLetters, DeathReason, Delivery,
    DeliveryError, Enqueue, Error, ErrorKind, Event, Hold, Lease, LeaseStatus, LeaseToken,
    Maintenance, MemoryStore, NewEvent, OutboxStore, Page, Receipt, Relay, Report, Settlement,
    Timer, TokioSpawn, TokioTimer, Transport, async_trait,
};

use super::random::Random;

const LEASE: Duration = Duration::from_secs(30);
const ATTEMPTS: u32 = 6;

struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + self.0.elapsed()
    }
}

async fn pass(period: Duration) {
    TokioTimer.sleep(period).await;
}

/// How bad things are; healed at the end.
#[derive(Clone, Copy)]
struct Weather {
    /// Store calls that fail, in a thousand.
    failing: u64,
    /// No store call works.
    down: bool,
    slowest_call: Duration,
    /// Deliveries that fail in some way, in a thousand.
    bad: u64,
    slowest_delivery: Duration,
}

const FAIR: Weather = Weather {
    failing: 0,
    down: false,
    slowest_call: Duration::from_millis(2),
    bad: 0,
    slowest_delivery: Duration::from_millis(20),
};

#[derive(Clone)]
struct Store {
    inner: MemoryStore,
    random: Random,
    weather: Arc<Mutex<Weather>>,
}

impl Store {
    async fn call<T>(&self, work: BoxFuture<'_, Result<T, Error>>) -> Result<T, Error> {
        let weather = *self.weather.lock().unwrap();
        let lost = |what: &'static str| {
            let kind = if self.random.chance(200) {
                ErrorKind::Conflict
            } else {
                ErrorKind::Unavailable
            };
            Err(Error::new(kind, what))
        };
        if self.random.chance(700) {
            pass(self.random.duration(weather.slowest_call)).await;
        }
        if weather.down || self.random.chance(weather.failing) {
            return lost("before");
        }
        let answer = work.await;
        if self.random.chance(500) {
            pass(self.random.duration(weather.slowest_call)).await;
        }
        if self.random.chance(weather.failing) {
            return lost("after");
        }
        answer
    }
}

#[async_trait]
impl OutboxStore for Store {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        self.call(self.inner.claim(request)).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.call(self.inner.settle(batch)).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        self.call(self.inner.extend(leases, by)).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.call(self.inner.release(leases)).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.call(self.inner.release_claim(token)).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.call(self.inner.hold(destination, hold)).await
    }
}

/// What is being delivered now, and what was received, over all relays.
#[derive(Default)]
struct Receiver {
    live: HashSet<String>,
    got: HashSet<i64>,
    attempts: HashMap<i64, u32>,
    /// Per lane, the last event that was received for the first time.
    last: HashMap<String, i64>,
    broken: Vec<String>,
}

impl Receiver {
    fn receive(&mut self, event: &Event) {
        if !self.got.insert(event.seq) {
            return;
        }
        let last = self.last.insert(lane(event), event.seq);
        if last > Some(event.seq) {
            self.broken
                .push(format!("{} came after {last:?}", event.seq));
        }
    }
}

/// What may be delivered one at a time only: a key, or the event itself.
fn lane(event: &Event) -> String {
    match &event.key {
        Some(key) => format!("{} {key}", event.destination),
        None => event.seq.to_string(),
    }
}

struct Live {
    lane: String,
    receiver: Arc<Mutex<Receiver>>,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.receiver.lock().unwrap().live.remove(&self.lane);
    }
}

#[derive(Clone)]
struct Net {
    random: Random,
    weather: Arc<Mutex<Weather>>,
    receiver: Arc<Mutex<Receiver>>,
}

impl Net {
    fn enter(&self, delivery: &Delivery) -> Live {
        let lane = lane(delivery.event());
        let mut receiver = self.receiver.lock().unwrap();
        if !receiver.live.insert(lane.clone()) {
            receiver.broken.push(format!("two at once: {lane}"));
        }
        let most = receiver.attempts.entry(delivery.event().seq).or_default();
        *most = (*most).max(delivery.attempt());
        let receiver = Arc::clone(&self.receiver);
        Live { lane, receiver }
    }
}

#[async_trait]
impl Transport for Net {
    async fn deliver(&self, delivery: Delivery) -> Result<Receipt, DeliveryError> {
        let live = self.enter(&delivery);
        let weather = *self.weather.lock().unwrap();
        let answer = if self.random.chance(weather.bad) {
            self.fail(&delivery).await
        } else {
            if self.random.chance(800) {
                pass(self.random.duration(weather.slowest_delivery)).await;
            }
            Ok(Receipt::new())
        };
        if answer.is_ok() {
            self.receiver.lock().unwrap().receive(delivery.event());
        }
        drop(live);
        answer
    }
}

impl Net {
    async fn fail(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        pass(self.random.duration(Duration::from_secs(3))).await;
        let asked = self.random.duration(Duration::from_secs(20));
        match self.random.between(0, 10) {
            0 => panic!("simulated"),
            1 => pending().await,
            2 => Err(DeliveryError::throttled("429").with_retry_after(asked)),
            3 => Err(DeliveryError::not_attempted("open").with_retry_after(asked)),
            4 if delivery.event().seq % 9 == 0 => Err(DeliveryError::gone("410")),
            5 => {
                // Received, and the answer was lost.
                self.receiver.lock().unwrap().receive(delivery.event());
                Err(DeliveryError::transient("reset"))
            }
            6 => Err(DeliveryError::transient("503").with_retry_after(asked)),
            _ => Err(DeliveryError::transient("500")),
        }
    }
}

pub(crate) struct World {
    random: Random,
    store: Store,
    net: Net,
    weather: Arc<Mutex<Weather>>,
    events: u64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let random = Random::new(seed);
        let weather = Arc::new(Mutex::new(FAIR));
        let inner = MemoryStore::with_clock(TokioClock(tokio::time::Instant::now()));
        Self {
            store: Store {
                inner,
                random: random.clone(),
                weather: Arc::clone(&weather),
            },
            net: Net {
                random: random.clone(),
                weather: Arc::clone(&weather),
                receiver: Arc::default(),
            },
            events: random.between(1, 120),
            weather,
            random,
        }
    }

    pub(crate) async fn live(self) {
        let relays = self.random.between(1, 4);
        let lives = (0..relays).map(|_| self.relay_life());
        let story = async {
            self.produce().await;
            self.change_weather().await;
        };
        let bad_times = async { futures::join!(join_all(lives), story) };
        bad_times.await;
        *self.weather.lock().unwrap() = FAIR;
        self.recover().await;
        self.check().await;
    }

    async fn produce(&self) {
        let (keys, destinations) = (self.random.between(1, 12), self.random.between(1, 6));
        let keyed = self.random.between(0, 1_001);
        let mut left = self.events;
        while left > 0 {
            let batch = self.random.between(1, left + 1);
            let events = (0..batch).map(|_| {
                let to = format!("d{}", self.random.between(0, destinations));
                let mut event = NewEvent::bytes("T", "x").to(to).id(self.random.id());
                if self.random.chance(keyed) {
                    event = event.key(self.random.between(0, keys));
                }
                if self.random.chance(50) {
                    event = event.delay(self.random.duration(Duration::from_secs(20)));
                }
                if self.random.chance(30) {
                    event = event.expires_in(self.random.duration(Duration::from_secs(60)));
                }
                event
            });
            let mut tx = self.store.inner.begin();
            let events = events.collect();
            self.store.inner.enqueue_all(&mut tx, events).await.unwrap();
            tx.commit();
            left -= batch;
            pass(self.random.duration(Duration::from_secs(5))).await;
        }
    }

    async fn change_weather(&self) {
        for _ in 0..self.random.between(0, 6) {
            let weather = Weather {
                failing: self.random.between(0, 300) * self.random.between(0, 2),
                down: self.random.chance(200),
                slowest_call: self.random.duration(Duration::from_secs(20)) + FAIR.slowest_call,
                bad: self.random.between(0, 600),
                slowest_delivery: self.random.duration(Duration::from_secs(9)) + FAIR.slowest_call,
            };
            *self.weather.lock().unwrap() = weather;
            pass(self.random.duration(Duration::from_secs(150))).await;
        }
    }

    fn relay(&self) -> Relay {
        let random = &self.random;
        let concurrency = usize::try_from(random.between(1, 20)).unwrap();
        let per_destination = usize::try_from(random.between(1, 10)).unwrap();
        let mut builder = Relay::builder(self.store.clone(), self.net.clone(), TokioTimer)
            .retry(
                Backoff::exponential()
                    .base(Duration::from_millis(100))
                    .max_attempts(ATTEMPTS),
            )
            .concurrency(concurrency)
            .per_destination(per_destination)
            .claim_bytes(random.between(1, 50))
            .lease(LEASE)
            .delivery_timeout(
                random.duration(LEASE - Duration::from_secs(1)) + Duration::from_millis(10),
            )
            .drain_budget(random.duration(Duration::from_secs(20)))
            .settle_batch(usize::try_from(random.between(1, 30)).unwrap())
            .jitter_seed(random.between(0, u64::MAX));
        if random.chance(300) {
            builder = builder.spawn(TokioSpawn);
        }
        builder.build().unwrap()
    }

    /// Relays, one after the other, that are killed, stopped, aborted, or end by themselves.
    async fn relay_life(&self) {
        for _ in 0..self.random.between(1, 5) {
            let relay = self.relay();
            let life = self.random.duration(Duration::from_secs(120));
            match self.random.between(0, 5) {
                0 => {
                    let run = Box::pin(relay.run(pending()));
                    if let Either::Left(_) = select(run, Box::pin(pass(life))).await {
                        panic!("a run ended with no signal");
                    }
                }
                1 => {
                    let abort = life + self.random.duration(Duration::from_secs(10));
                    self.ends(relay.run_until(pass(life), pass(abort)), life)
                        .await;
                }
                2 => {
                    let run = async { relay.run_once().await.unwrap_or_default() };
                    self.ends(run, Duration::from_secs(600)).await;
                }
                _ => {
                    self.ends(relay.run(pass(life)), life).await;
                }
            }
        }
    }

    /// A run ends within the budget and the grace after its signal.
    async fn ends(&self, run: impl Future<Output = Report>, life: Duration) {
        let limit = life + Duration::from_secs(20 + 5 + 1);
        let (run, limit) = (Box::pin(run), Box::pin(pass(limit)));
        assert!(
            matches!(select(run, limit).await, Either::Left(_)),
            "a run did not end"
        );
    }

    async fn recover(&self) {
        let relay = Relay::builder(self.store.clone(), self.net.clone(), TokioTimer)
            .retry(Backoff::exponential().max_attempts(ATTEMPTS))
            .jitter_seed(0)
            .build()
            .unwrap();
        let done = async {
            for _ in 0..3_600 {
                if self.store.inner.stats(1_000).await.unwrap().pending.value == 0 {
                    return;
                }
                pass(Duration::from_millis(100)).await;
            }
            let stats = self.store.inner.stats(1_000).await.unwrap();
            panic!("still pending after six fair minutes: {stats:?}");
        };
        relay.run(done).await;
    }

    async fn check(&self) {
        let receiver = self.net.receiver.lock().unwrap();
        assert!(receiver.broken.is_empty(), "{:?}", receiver.broken);
        let published = self.store.inner.published();
        let page = Page::after(0, 10_000);
        let dead =
            futures::executor::block_on(self.store.inner.list(&DeadLetterFilter::all(), &page));
        let dead = dead.unwrap();
        assert_eq!(
            published.len() + dead.len(),
            usize::try_from(self.events).unwrap()
        );
        for event in &published {
            assert!(
                receiver.got.contains(&event.seq),
                "published, never received: {event:?}"
            );
        }
        for letter in &dead {
            let known = [
                DeathReason::AttemptsExhausted,
                DeathReason::Gone,
                DeathReason::Expired,
            ];
            assert!(known.contains(&letter.reason), "{letter:?}");
        }
        for (seq, attempts) in &receiver.attempts {
            assert!(
                *attempts <= ATTEMPTS,
                "event {seq} was tried {attempts} times"
            );
        }
    }
}
