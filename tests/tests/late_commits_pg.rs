//! An event whose transaction commits late, when claims have passed its number.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use outbox_core::{
    ClaimRequest, Enqueue, EventId, NewEvent, OutboxStore, Outcome, Retention, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool};
use tests::PgServer;

/// Far more than is claimed while the late event is awaited.
const BACKLOG: u32 = 300_000;

struct Scene {
    store: PgStore,
    pool: PgPool,
    url: String,
    _server: PgServer,
}

impl Scene {
    async fn new() -> Self {
        let server = PgServer::start_with(&["shared_buffers=256MB", "max_wal_size=4GB"]);
        let url = server.create_database();
        let pool = PgPool::connect(&url).await.expect("connected");
        let store = PgStore::new(pool.clone()).retention(Retention::DeleteAtOnce);
        store.migrate().await.expect("migrated");
        Self {
            store,
            pool,
            url,
            _server: server,
        }
    }

    async fn fill(&self, events: u32) {
        let insert = format!(
            "INSERT INTO outbox_events (id, event_type, destination, payload)
             SELECT gen_random_uuid(), 'T', 'd', decode(repeat('ab', 200), 'hex')
             FROM generate_series(1, {events})"
        );
        self.pool
            .execute(AssertSqlSafe(insert))
            .await
            .expect("filled");
    }

    /// Claims and settles once; returns the ids.
    async fn claim(&self) -> Vec<EventId> {
        let rows = NonZeroU32::new(100).expect("rows");
        let request = ClaimRequest::new(rows, Duration::from_secs(60));
        let events = self.store.claim(&request).await.expect("claimed").events;
        let published: Vec<Settlement> = events
            .iter()
            .map(|one| Settlement::new(one.lease, Outcome::Published))
            .collect();
        self.store.settle(&published).await.expect("settled");
        events.iter().map(|one| one.event.id).collect()
    }

    /// Lets claims pass the number of an event that is not committed, commits it, and tells how long
    /// it took until a claim brought it. The backlog lasts all the while.
    async fn late_by(&self, dead: u32) -> Duration {
        let mut producer = PgConnection::connect(&self.url).await.expect("connected");
        let mut late = producer.begin().await.expect("begun");
        let event = NewEvent::bytes("T", "late").to("d");
        let id = event.event_id();
        self.store
            .enqueue(&mut late, event)
            .await
            .expect("enqueued");
        self.fill(dead).await;
        let deleted = "DELETE FROM outbox_events";
        self.pool.execute(deleted).await.expect("deleted");
        self.fill(BACKLOG).await;
        self.pool
            .execute("ANALYZE outbox_events")
            .await
            .expect("analyzed");
        for _ in 0..20 {
            assert_eq!(self.claim().await.len(), 100);
        }
        late.commit().await.expect("committed");
        let committed = Instant::now();
        loop {
            let came = self.claim().await;
            if came.contains(&id) {
                return committed.elapsed();
            }
            assert_eq!(
                came.len(),
                100,
                "the backlog is drained and the late event is not here"
            );
        }
    }

    /// How long PostgreSQL walks from the first number, dead rows included, to an event.
    async fn walk(&self) -> Duration {
        let begun = Instant::now();
        let walk = "SELECT seq FROM outbox_events WHERE shape = 0 AND lease_until IS NULL
                    ORDER BY seq LIMIT 1";
        self.pool.execute(walk).await.expect("walked");
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
    let scene = Scene::new().await;
    let late = scene.late_by(0).await;
    let begun = Instant::now();
    for _ in 0..20 {
        scene.claim().await;
    }
    let bound = bound(1.0, begun.elapsed(), Duration::from_millis(200));
    assert!(late <= bound, "{late:?}, not {bound:?}");
}

#[tokio::test]
async fn is_claimed_within_ten_seconds_behind_half_a_million_dead_rows_that_stay() {
    let scene = Scene::new().await;
    let mut old = PgConnection::connect(&scene.url).await.expect("connected");
    for statement in [
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "SELECT count(*) FROM outbox_events",
    ] {
        old.execute(statement).await.expect("executed");
    }
    let late = scene.late_by(500_000).await;
    let bound = bound(10.0, scene.walk().await, Duration::from_millis(250));
    assert!(late <= bound, "{late:?}, not {bound:?}");
    old.close().await.expect("closed");
}
