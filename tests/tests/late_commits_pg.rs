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
    /// it took until a claim brought it, while the backlog lasted.
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
}

#[tokio::test]
async fn is_claimed_within_a_second() {
    let scene = Scene::new().await;
    let late = scene.late_by(0).await;
    assert!(late <= Duration::from_secs(1), "{late:?}");
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
    assert!(late <= Duration::from_secs(10), "{late:?}");
    old.close().await.expect("closed");
}
