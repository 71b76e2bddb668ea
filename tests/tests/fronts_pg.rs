//! Claims at the front of a stripe and walks through keys, on the same rows: what one has under a
//! lease, the other has to see, wherever it is.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outbox_core::{ClaimRequest, Claimed, OutboxStore};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::types::Uuid;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool, Row};

/// What a statement claims: walks and fronts may have any number of rows, and choose a type of event.
#[derive(Clone, Copy)]
enum By {
    Front,
    Walk,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    seq: i64,
    key: String,
}

async fn pool() -> PgPool {
    let url = tests::PgServer::shared().create_database();
    let pool = PgPoolOptions::new().max_connections(8).connect(&url).await;
    let pool = pool.expect("connected");
    PgStore::new(pool.clone())
        .migrate()
        .await
        .expect("migrated");
    pool
}

async fn execute(pool: &PgPool, text: &str) -> u64 {
    let done = sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
        .execute(pool)
        .await;
    done.expect(text).rows_affected()
}

/// Events of a key from the number `first` on, of type T.
async fn add(pool: &PgPool, key: &str, first: i64, events: i64) {
    execute(
        pool,
        &format!(
            "INSERT INTO outbox_events (seq, id, event_type, destination, key, payload, shape)
             SELECT {first} + n, gen_random_uuid(), 'T', 'd', '{key}', 'x', 2
             FROM generate_series(0, {events} - 1) n"
        ),
    )
    .await;
}

/// Names of keys in the stripe of this one.
async fn neighbours(pool: &PgPool, key: &str, count: i64) -> Vec<String> {
    let rows = sqlx::query(
        "WITH hash AS (SELECT n::text AS key,
             hashtextextended(n::text, hashtextextended('d', 0)) >> 60 AS stripe FROM generate_series(0, 100000) n)
         SELECT key FROM hash
         WHERE key <> $1 AND stripe = hashtextextended($1, hashtextextended('d', 0)) >> 60 LIMIT $2",
    )
    .bind(key)
    .bind(count)
    .fetch_all(pool)
    .await
    .expect("keys");
    rows.iter().map(|row| row.get(0)).collect()
}

const FRONT: &str = "SELECT seq, key FROM outbox_claim_front_v1($1, $2::bigint * interval '1 ms', $3, 1000000, true,
    NULL, NULL, NULL, ARRAY(SELECT g FROM generate_series(-8, 7) g ORDER BY random()), $4, $5)
    WHERE shape >= 0 ORDER BY seq";
const WALK: &str = "SELECT seq, key FROM outbox_claim_keyed_v1($1, $2::bigint * interval '1 ms', $3, 1000000, true,
    '', $4::bigint << 60, NULL, NULL, NULL, $5, $4, $4)
    WHERE shape >= 0 ORDER BY seq";

/// One claim; its lease is so many milliseconds long.
async fn claim(
    pool: &PgPool,
    by: By,
    token: Uuid,
    rows: i32,
    lease: i64,
    variant: u64,
) -> Vec<Event> {
    let (text, stripe) = match by {
        By::Front => (FRONT, 0),
        By::Walk => (WALK, i64::try_from(variant % 16).expect("a stripe") - 8),
    };
    let query = sqlx::query(text).bind(token).bind(lease).bind(rows);
    let query = match by {
        By::Front => query.bind(variant.is_multiple_of(2)),
        By::Walk => query.bind(stripe),
    };
    let rows = query.bind(variant.is_multiple_of(3)).fetch_all(pool).await;
    let event = |row: &sqlx::postgres::PgRow| Event {
        seq: row.get(0),
        key: row.get(1),
    };
    rows.expect("claimed").iter().map(event).collect()
}

fn stripe(key_hash: i64) -> u64 {
    u64::try_from((key_hash >> 60) + 8).expect("a stripe")
}

/// The number by which a walk goes through the stripe of this key.
async fn stripe_of(pool: &PgPool, key: &str) -> u64 {
    let hash = sqlx::query_scalar("SELECT hashtextextended($1, hashtextextended('d', 0))")
        .bind(key)
        .fetch_one(pool)
        .await;
    stripe(hash.expect("a hash"))
}

async fn settle(pool: &PgPool, token: Uuid, events: &[Event]) {
    let seqs: Vec<i64> = events.iter().map(|event| event.seq).collect();
    let gone = sqlx::query("DELETE FROM outbox_events WHERE seq = ANY ($1) AND lease_token = $2")
        .bind(&seqs)
        .bind(token)
        .execute(pool)
        .await;
    assert_eq!(gone.expect("settled").rows_affected(), events.len() as u64);
}

fn of_key<'a>(events: &'a [Event], key: &str) -> Vec<&'a Event> {
    events.iter().filter(|event| event.key == key).collect()
}

#[tokio::test]
async fn a_front_waits_for_a_lease_far_behind_it() {
    let pool = pool().await;
    let others = neighbours(&pool, "k", 1_500).await;
    add(&pool, "k", 10_000, 1).await;
    let walk = Uuid::new_v4();
    let far = claim(
        &pool,
        By::Walk,
        walk,
        10,
        60_000,
        stripe_of(&pool, "k").await,
    )
    .await;
    assert_eq!(of_key(&far, "k").len(), 1);
    for (n, key) in (0..).zip(&others) {
        add(&pool, key, 100 + n, 1).await;
    }
    // It committed late.
    add(&pool, "k", 1, 1).await;
    let mut came = 0;
    for variant in 0..40 {
        let token = Uuid::new_v4();
        let events = claim(&pool, By::Front, token, 10, 60_000, variant).await;
        assert!(of_key(&events, "k").is_empty(), "after {came}");
        came += events.len();
        settle(&pool, token, &events).await;
    }
    settle(&pool, walk, &far).await;
    let rest = claim(&pool, By::Front, walk, 2_000, 60_000, 1).await;
    assert_eq!(of_key(&rest, "k")[0].seq, 1);
    assert_eq!(rest.len() + came, 1_501);
}

#[tokio::test]
async fn a_walk_waits_for_a_lease_that_a_claim_at_the_front_took() {
    for recorded in [false, true] {
        let pool = pool().await;
        let walked = stripe_of(&pool, "k").await;
        add(&pool, "k", 1_000, 200).await;
        if recorded {
            let token = Uuid::new_v4();
            let run = claim(&pool, By::Walk, token, 100, 60_000, walked).await;
            assert_eq!(run.len(), 100);
            settle(&pool, token, &run).await;
        }
        let front = Uuid::new_v4();
        let run = claim(&pool, By::Front, front, 30, 60_000, 1).await;
        assert_eq!(run.len(), 30);
        // They committed late, and are more than a walk reads of a key before it looks for leases.
        add(&pool, "k", 1, 60).await;
        for variant in [0, 16, 48] {
            let events = claim(
                &pool,
                By::Walk,
                Uuid::new_v4(),
                100,
                60_000,
                walked + variant,
            )
            .await;
            assert_eq!(events, [], "recorded: {recorded}");
        }
        settle(&pool, front, &run).await;
        let next = claim(&pool, By::Walk, Uuid::new_v4(), 100, 60_000, walked).await;
        assert_eq!(next[0].seq, 1);
    }
}

/// What a walk noted of a key before claims at the front is no proof of what these left.
#[tokio::test]
async fn a_walk_does_not_believe_an_old_record() {
    let pool = pool().await;
    let walked = stripe_of(&pool, "k").await;
    add(&pool, "k", 1_000, 200).await;
    let token = Uuid::new_v4();
    let run = claim(&pool, By::Walk, token, 60, 60_000, walked).await;
    assert_eq!(run.len(), 60);
    execute(
        &pool,
        "UPDATE outbox_events SET lease_token = NULL, lease_until = NULL",
    )
    .await;
    add(&pool, "k", 900, 30).await;
    let front = Uuid::new_v4();
    let run = claim(&pool, By::Front, front, 120, 60_000, 1).await;
    assert_eq!((run[0].seq, run.len()), (900, 120));
    add(&pool, "k", 1, 60).await;
    assert_eq!(
        claim(&pool, By::Walk, Uuid::new_v4(), 100, 60_000, walked).await,
        []
    );
    settle(&pool, front, &run[30..]).await;
    assert_eq!(
        claim(&pool, By::Walk, Uuid::new_v4(), 100, 60_000, walked).await,
        []
    );
    settle(&pool, front, &run[..30]).await;
    assert_eq!(
        claim(&pool, By::Walk, Uuid::new_v4(), 100, 60_000, walked).await[0].seq,
        1
    );
}

#[tokio::test]
async fn a_front_gives_events_behind_what_a_walk_of_a_long_key_took() {
    let pool = pool().await;
    let walked = stripe_of(&pool, "k").await;
    add(&pool, "k", 1, 300).await;
    let token = Uuid::new_v4();
    let run = claim(&pool, By::Walk, token, 100, 60_000, walked).await;
    settle(&pool, token, &run).await;
    for (n, key) in (0..).zip(&neighbours(&pool, "k", 400).await) {
        add(&pool, key, 5_000 + n, 1).await;
    }
    let mut came = 0;
    for _ in 0..6 {
        let token = Uuid::new_v4();
        let events = claim(&pool, By::Front, token, 100, 60_000, 1).await;
        came += events.len();
        settle(&pool, token, &events).await;
    }
    assert_eq!(came, 600);
}

#[tokio::test]
async fn records_of_keys_go_with_the_last_events_of_their_stripe() {
    let pool = pool().await;
    let records = "SELECT FROM outbox_runs WHERE destination <> ''";
    add(&pool, "k", 1, 100).await;
    let token = Uuid::new_v4();
    let walked = stripe_of(&pool, "k").await;
    let run = claim(&pool, By::Walk, token, 50, 60_000, walked).await;
    settle(&pool, token, &run).await;
    assert_eq!(execute(&pool, records).await, 1);
    let run = claim(&pool, By::Front, token, 100, 60_000, 1).await;
    assert_eq!(run.len(), 50);
    settle(&pool, token, &run).await;
    for together in [1, 4] {
        claim(&pool, By::Front, token, 100, 60_000, together).await;
    }
    assert_eq!(execute(&pool, records).await, 0);
}

/// A walk through one stripe goes round within it; a release looks there too.
#[tokio::test]
async fn what_a_walk_took_after_it_went_round_is_released() {
    let pool = pool().await;
    let mut lowest = None;
    let mut other = None;
    for n in 0..200 {
        let key = n.to_string();
        match stripe_of(&pool, &key).await {
            0 if lowest.is_none() => lowest = Some(key),
            8 if other.is_none() => other = Some(key),
            _ => {}
        }
    }
    // More than a release looks through before it.
    add(&pool, &lowest.expect("a key"), 1, 25_000).await;
    let other = other.expect("a key");
    add(&pool, &other, 100_000, 10).await;
    let token = Uuid::new_v4();
    let taken = sqlx::query(
        "SELECT FROM outbox_claim_keyed_v1($1, '1 min', 100, 1000000, true, 'd',
             hashtextextended($2, hashtextextended('d', 0)), NULL, NULL, NULL, false, 0, 0)
         WHERE shape >= 0",
    );
    let taken = taken.bind(token).bind(&other).fetch_all(&pool).await;
    assert_eq!(taken.expect("claimed").len(), 10);
    let released = sqlx::query(
        "SELECT FROM outbox_release_claim_v1($1, 'd',
             hashtextextended($2, hashtextextended('d', 0)))",
    );
    let released = released.bind(token).bind(&other).fetch_all(&pool).await;
    assert_eq!(released.expect("released").len(), 10);
}

/// A row that is locked by somebody else looks free to a claim that takes no guard yet.
#[tokio::test]
async fn a_careful_look_tells_of_each_stripe_that_is_jammed() {
    let pool = pool().await;
    add(&pool, "locked", 1, 60).await;
    let other = neighbours(&pool, "locked", 1).await;
    add(&pool, &other[0], 100, 1).await;
    let waiting: Vec<String> = {
        let rows = sqlx::query(
            "SELECT n::text FROM generate_series(1, 1000) n
             WHERE hashtextextended(n::text, hashtextextended('d', 0)) >> 60
                <> hashtextextended('locked', hashtextextended('d', 0)) >> 60 LIMIT 1",
        );
        let rows = rows.fetch_all(&pool).await.expect("keys");
        rows.iter().map(|row| row.get(0)).collect()
    };
    add(&pool, &waiting[0], 1_000, 700).await;
    let later =
        "UPDATE outbox_events SET available_at = now() + interval '1 hour' WHERE seq = 1000";
    execute(&pool, later).await;
    let mut lock = pool.begin().await.expect("begun");
    let held = "SELECT FROM outbox_events WHERE seq < 1000 FOR UPDATE";
    sqlx::raw_sql(held)
        .execute(&mut *lock)
        .await
        .expect("locked");
    let note: i64 = sqlx::query_scalar(
        "SELECT seq FROM outbox_claim_front_v1(gen_random_uuid(), '1 min', 100, 1000000, true, NULL, NULL,
            NULL, ARRAY(SELECT generate_series(-8, 7)), false, true) WHERE shape < 0",
    )
    .fetch_one(&pool)
    .await
    .expect("a note");
    let bit = 1 << (32 + stripe_of(&pool, &waiting[0]).await);
    assert_ne!(note & bit, 0, "{note:x}");
}

/// One claim looks at so many rows, however many fronts wait; it tells which it came to.
#[tokio::test]
async fn a_claim_looks_at_few_fronts_where_all_are_jammed() {
    let pool = pool().await;
    let mut keys: Vec<Option<String>> = vec![None; 16];
    for n in 0..400 {
        let key = n.to_string();
        let at = usize::try_from(stripe_of(&pool, &key).await).expect("small");
        keys[at].get_or_insert(key);
    }
    for (n, key) in (0..).zip(keys) {
        add(&pool, &key.expect("a key"), 10_000 * n, 1_200).await;
    }
    let later =
        "UPDATE outbox_events SET available_at = now() + interval '1 hour' WHERE seq % 10000 = 0";
    assert_eq!(execute(&pool, later).await, 16);
    let text =
        "SELECT seq FROM outbox_claim_front_v1(gen_random_uuid(), '1 min', 100, 1000000, true, NULL, NULL,
            NULL, ARRAY(SELECT generate_series(-8, 7)), false, $1) WHERE shape < 0";
    let note: i64 = sqlx::query_scalar(text)
        .bind(false)
        .fetch_one(&pool)
        .await
        .expect("a note");
    let (looked, jammed) = (note & 0xffff, note >> 32 & 0xffff);
    assert!((1..=8).contains(&looked.count_ones()), "{note:x}");
    assert_eq!(looked, jammed, "{note:x}");
}

/// Events that come one by one elsewhere do not keep a claim from walking through a jammed stripe.
#[tokio::test]
async fn a_jammed_stripe_is_walked_through_while_others_trickle() {
    let pool = pool().await;
    let walked = stripe_of(&pool, "waits").await;
    add(&pool, "waits", 1, 1_000).await;
    let later = "UPDATE outbox_events SET available_at = now() + interval '1 hour' WHERE seq = 1";
    execute(&pool, later).await;
    for (n, key) in (0..).zip(neighbours(&pool, "waits", 600).await) {
        add(&pool, &key, 2_000 + n, 1).await;
    }
    let mut elsewhere = 0_i64;
    let store = PgStore::new(pool.clone());
    let request = ClaimRequest::new(NonZeroU32::new(100).expect("rows"), Duration::from_secs(60));
    let mut behind = 0;
    for _ in 0..16 {
        loop {
            elsewhere += 1;
            if stripe_of(&pool, &elsewhere.to_string()).await != walked {
                break;
            }
        }
        add(&pool, &elsewhere.to_string(), 100_000 + elsewhere, 1).await;
        let events = store.claim(&request).await.expect("claimed").events;
        let is_behind = |one: &&Claimed| (2_000..3_000).contains(&one.lease.seq);
        behind += events.iter().filter(is_behind).count();
        execute(
            &pool,
            "DELETE FROM outbox_events WHERE lease_token IS NOT NULL",
        )
        .await;
    }
    assert_eq!(behind, 600);
}

#[tokio::test]
async fn an_ended_lease_at_the_front_is_claimed_again_unless_its_extension_is_under_way() {
    let pool = pool().await;
    add(&pool, "held", 1, 3).await;
    add(&pool, "free", 10, 3).await;
    for variant in [0, 1] {
        let first = claim(&pool, By::Front, Uuid::new_v4(), 10, 50, variant).await;
        assert!(of_key(&first, "free").len() == 3);
        tokio::time::sleep(Duration::from_millis(80)).await;
        let mut extension = pool.begin().await.expect("begun");
        let text = "UPDATE outbox_events SET lease_until = now() + interval '300 ms' WHERE seq = 2";
        sqlx::raw_sql(text)
            .execute(&mut *extension)
            .await
            .expect("extended");
        let again = claim(&pool, By::Front, Uuid::new_v4(), 10, 50, variant).await;
        assert!(of_key(&again, "held").is_empty());
        assert_eq!(of_key(&again, "free").len(), 3);
        extension.commit().await.expect("committed");
        let again = claim(&pool, By::Front, Uuid::new_v4(), 10, 50, variant).await;
        assert!(of_key(&again, "held").is_empty());
        tokio::time::sleep(Duration::from_millis(400)).await;
        let again = claim(&pool, By::Front, Uuid::new_v4(), 10, 50, variant).await;
        assert_eq!(of_key(&again, "held").len(), 3);
        tokio::time::sleep(Duration::from_millis(80)).await;
    }
}

/// Keys that somebody has under a lease, and by what claim.
type InFlight = Arc<Mutex<HashMap<String, Uuid>>>;

fn take(in_flight: &InFlight, token: Uuid, events: &[Event]) {
    let mut in_flight = in_flight.lock().expect("no panic");
    for event in events {
        let other = in_flight.insert(event.key.clone(), token);
        assert!(
            other.is_none_or(|other| other == token),
            "{event:?} was claimed while another claim has its key"
        );
    }
}

fn give_back(in_flight: &InFlight, events: &[Event]) {
    let mut in_flight = in_flight.lock().expect("no panic");
    for event in events {
        in_flight.remove(&event.key);
    }
}

/// A sequence of numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

async fn work(pool: PgPool, in_flight: InFlight, seed: u64, until: Instant) -> usize {
    let mut dice = Dice(seed);
    let mut settled = 0;
    while Instant::now() < until {
        let token = Uuid::new_v4();
        let by = if dice.below(2) == 0 {
            By::Front
        } else {
            By::Walk
        };
        let rows = [1, 5, 20, 60, 300][usize::try_from(dice.below(5)).expect("small")];
        let ends = dice.below(6) == 0;
        let lease = if ends { 40 } else { 60_000 };
        let events = claim(&pool, by, token, rows, lease, dice.below(1 << 20)).await;
        if ends {
            // Nobody gives these back.
            continue;
        }
        take(&in_flight, token, &events);
        tokio::time::sleep(Duration::from_millis(dice.below(20))).await;
        give_back(&in_flight, &events);
        if dice.below(4) == 0 {
            let text = "UPDATE outbox_events SET lease_token = NULL, lease_until = NULL WHERE lease_token = $1";
            let released = sqlx::query(text).bind(token).execute(&pool).await;
            released.expect("released");
        } else {
            settle(&pool, token, &events).await;
            settled += events.len();
        }
    }
    settled
}

/// Adds events of a few long keys and of many short ones; some commit late, some return with old numbers.
async fn produce(pool: PgPool, seed: u64, until: Instant) {
    let mut dice = Dice(seed);
    let mut old = -1_000_000 * i64::try_from(seed).expect("small");
    while Instant::now() < until {
        let key = match dice.below(3) {
            0 => dice.below(3),
            1 => dice.below(40),
            _ => dice.below(5_000),
        };
        let events = [1, 3, 40][usize::try_from(dice.below(3)).expect("small")];
        if dice.below(6) == 0 {
            old -= 100;
            add(&pool, &key.to_string(), old, events).await;
            continue;
        }
        let mut tx = pool.begin().await.expect("begun");
        let text = "INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
            SELECT gen_random_uuid(), 'T', 'd', $1, 'x', 2 FROM generate_series(1, $2)";
        let added = sqlx::query(text).bind(key.to_string()).bind(events);
        added.execute(&mut *tx).await.expect("added");
        tokio::time::sleep(Duration::from_millis(dice.below(15))).await;
        tx.commit().await.expect("committed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_of_both_kinds_at_the_same_time_never_share_a_key() {
    let pool = pool().await;
    for key in 0..3_000_i64 {
        add(&pool, &(key % 700).to_string(), -10 - key, 1).await;
    }
    let in_flight = InFlight::default();
    let until = Instant::now() + Duration::from_secs(6);
    let producers = [1, 2].map(|seed| tokio::spawn(produce(pool.clone(), seed, until)));
    let workers = [11, 12, 13, 14, 15]
        .map(|seed| tokio::spawn(work(pool.clone(), Arc::clone(&in_flight), seed, until)));
    for producer in producers {
        producer.await.expect("no panic");
    }
    let mut settled = 0;
    for worker in workers {
        settled += worker.await.expect("no panic");
    }
    assert!(settled > 1_000, "{settled}");

    // Nothing is left behind, and what is left comes in its key's order.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut last: HashMap<String, i64> = HashMap::new();
    for variant in 0..20_000 {
        let token = Uuid::new_v4();
        let by = if variant % 2 == 0 {
            By::Front
        } else {
            By::Walk
        };
        let events = claim(&pool, by, token, 200, 60_000, variant / 2).await;
        for event in &events {
            let before = last.insert(event.key.clone(), event.seq);
            assert!(
                before.is_none_or(|before| before < event.seq),
                "{event:?} after {before:?}"
            );
        }
        settle(&pool, token, &events).await;
        if variant % 64 == 63 && execute(&pool, "SELECT FROM outbox_events LIMIT 1").await == 0 {
            break;
        }
    }
    assert_eq!(execute(&pool, "SELECT FROM outbox_events").await, 0);
}
