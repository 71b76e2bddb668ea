//! An event whose transaction commits late, when claims have passed its number.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_core::{
    ClaimRequest, Enqueue, Event, NewEvent, OutboxStore, Outcome, Retention, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool};
use tests::PgServer;

/// Far more than is claimed while the late event is awaited.
const BACKLOG: u32 = 300_000;

/// Far longer than any bound.
const GIVE_UP: Duration = Duration::from_secs(300);
/// The keys of events that have one: so many that claims which go from key to key are not round in time.
/// Most have more than one event.
const KEYS: u32 = 200_000;

struct Scene {
    keyed: bool,
    store: PgStore,
    pool: PgPool,
    url: String,
    _server: PgServer,
}

impl Scene {
    /// Where all events have a key, or none has.
    async fn new(keyed: bool) -> Self {
        let server = PgServer::start_with(&["shared_buffers=256MB", "max_wal_size=4GB"]);
        let url = server.create_database();
        let pool = PgPool::connect(&url).await.expect("connected");
        let store = PgStore::new(pool.clone()).retention(Retention::DeleteAtOnce);
        store.migrate().await.expect("migrated");
        Self {
            keyed,
            store,
            pool,
            url,
            _server: server,
        }
    }

    fn shape(&self) -> u32 {
        if self.keyed { 2 } else { 0 }
    }

    async fn fill(&self, events: u32) {
        let (keyed, shape) = (self.keyed, self.shape());
        let insert = format!(
            "INSERT INTO outbox_events (id, event_type, destination, key, shape, payload)
             SELECT gen_random_uuid(), 'T', 'd', CASE WHEN {keyed} THEN (n % {KEYS})::text END, {shape},
                 decode(repeat('ab', 200), 'hex')
             FROM generate_series(1, {events}) n"
        );
        self.pool
            .execute(AssertSqlSafe(insert))
            .await
            .expect("filled");
    }

    /// Claims and settles once.
    async fn claim(&self) -> Vec<Arc<Event>> {
        let rows = NonZeroU32::new(100).expect("rows");
        let request = ClaimRequest::new(rows, Duration::from_secs(60));
        let events = self.store.claim(&request).await.expect("claimed").events;
        let published: Vec<Settlement> = events
            .iter()
            .map(|one| Settlement::new(one.lease, Outcome::Published))
            .collect();
        self.store.settle(&published).await.expect("settled");
        events.into_iter().map(|one| one.event).collect()
    }

    /// Lets claims pass the number of an event that is not committed, commits it, and tells how long
    /// it took until a claim brought it. So many rows before it and after it are dead. The backlog lasts
    /// all the while, and each key keeps its order.
    async fn late_by(&self, dead: [u32; 2]) -> Duration {
        self.fill(dead[0]).await;
        let mut producer = PgConnection::connect(&self.url).await.expect("connected");
        let mut late = producer.begin().await.expect("begun");
        let mut event = NewEvent::bytes("T", "late").to("d");
        if self.keyed {
            event = event.key(KEYS / 2);
        }
        let id = event.event_id();
        let stored = self.store.enqueue(&mut late, event).await;
        stored.expect("enqueued");
        self.fill(dead[1]).await;
        let deleted = "DELETE FROM outbox_events";
        self.pool.execute(deleted).await.expect("deleted");
        self.fill(BACKLOG).await;
        self.pool
            .execute("ANALYZE outbox_events")
            .await
            .expect("analyzed");
        let (mut claimed, begun) = (0, Instant::now());
        while claimed < 2_000 {
            claimed += self.claim().await.len();
            assert!(begun.elapsed() < GIVE_UP, "{claimed} were claimed");
        }
        late.commit().await.expect("committed");
        let committed = Instant::now();
        // The late one goes before all of its key that are claimed from now on.
        let mut last = HashMap::new();
        loop {
            let came = self.claim().await;
            for event in came.iter().filter(|event| event.key.is_some()) {
                let before = last.insert(event.key.clone(), event.seq);
                assert!(before < Some(event.seq), "{before:?} before {event:?}");
            }
            if came.iter().any(|event| event.id == id) {
                return committed.elapsed();
            }
            claimed += came.len();
            assert!(
                claimed < BACKLOG as usize && committed.elapsed() < GIVE_UP,
                "{claimed} were claimed and the late event is not here"
            );
        }
    }

    /// How long PostgreSQL walks from the first number, dead rows included, to an event.
    async fn walk(&self) -> Duration {
        let begun = Instant::now();
        let walk = format!(
            "SELECT seq FROM outbox_events WHERE shape = {} AND lease_until IS NULL
             ORDER BY seq LIMIT 1",
            self.shape()
        );
        self.pool
            .execute(AssertSqlSafe(walk))
            .await
            .expect("walked");
        begun.elapsed()
    }
}

/// The bound, which is that of a machine with nothing else to do, on this machine now: longer as
/// `took` is longer than what takes `quiet` there, and that twice, since load comes and goes.
fn bound(seconds: f64, took: Duration, quiet: Duration) -> Duration {
    let slower = took.as_secs_f64() / quiet.as_secs_f64();
    Duration::from_secs_f64(seconds * (2.0 * slower - 1.0).max(1.0))
}

#[tokio::test]
async fn is_claimed_within_a_second() {
    let scene = Scene::new(false).await;
    let late = scene.late_by([0, 0]).await;
    let begun = Instant::now();
    for _ in 0..20 {
        scene.claim().await;
    }
    let bound = bound(1.0, begun.elapsed(), Duration::from_millis(200));
    assert!(late <= bound, "{late:?}, not {bound:?}");
}

/// An old transaction keeps the dead rows.
async fn is_claimed_within_ten_seconds(keyed: bool, dead: [u32; 2]) {
    let scene = Scene::new(keyed).await;
    let mut old = PgConnection::connect(&scene.url).await.expect("connected");
    for statement in [
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "SELECT count(*) FROM outbox_events",
    ] {
        old.execute(statement).await.expect("executed");
    }
    let late = scene.late_by(dead).await;
    let bound = bound(10.0, scene.walk().await, Duration::from_millis(250));
    assert!(late <= bound, "{late:?}, not {bound:?}");
    old.close().await.expect("closed");
}

#[tokio::test]
async fn is_claimed_within_ten_seconds_behind_half_a_million_dead_rows_that_stay() {
    is_claimed_within_ten_seconds(false, [0, 500_000]).await;
}

#[tokio::test]
async fn with_a_key_is_claimed_within_ten_seconds_among_half_a_million_dead_rows_that_stay() {
    is_claimed_within_ten_seconds(true, [250_000, 250_000]).await;
}
