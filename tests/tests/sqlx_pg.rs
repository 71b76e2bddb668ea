//! What `PgStore` of outbox-sqlx does beyond the conformance suite.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use outbox_core::sql::TableNames;
use outbox_core::{
    ClaimRequest, Enqueue, ErrorKind, Maintenance, NewEvent, OutboxStore, Outcome, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::{self, PgPool};
use tests::PgServer;

async fn pool() -> PgPool {
    let url = PgServer::shared().create_database();
    PgPool::connect(&url).await.expect("connected")
}

async fn store() -> PgStore {
    let store = PgStore::new(pool().await);
    store.migrate().await.expect("migrated");
    store
}

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("d")
}

mod enqueue {
    use super::*;

    #[tokio::test]
    async fn takes_transactions_pooled_and_plain_connections_and_arcs() {
        let store = Arc::new(store().await);
        let mut tx = store.pool().begin().await.expect("begun");
        store.enqueue(&mut tx, event()).await.expect("transaction");
        tx.commit().await.expect("committed");
        let mut conn = store.pool().acquire().await.expect("acquired");
        store.enqueue(&mut conn, event()).await.expect("pooled");
        let mut conn = conn.detach();
        store.enqueue(&mut conn, event()).await.expect("plain");
        let stats = store.stats(10).await.expect("stats");
        assert_eq!(stats.pending.value, 3);
    }
}

mod schema {
    use super::*;

    #[tokio::test]
    async fn is_migrated_by_many_processes_at_once() {
        let pool = pool().await;
        let names = TableNames::new("out-box").expect("a prefix");
        let names = names.schema("My-Schema").expect("a schema");
        let one = || PgStore::new(pool.clone()).tables(names.clone());
        let stores = [one(), one(), one(), one()];
        let [a, b, c, d] = &stores;
        let all = tokio::join!(a.migrate(), b.migrate(), c.migrate(), d.migrate());
        for done in [all.0, all.1, all.2, all.3] {
            done.expect("migrated");
        }
        a.check_schema().await.expect("up to date");
        let mut conn = pool.acquire().await.expect("acquired");
        a.enqueue(&mut conn, event()).await.expect("enqueued");
    }

    #[tokio::test]
    async fn that_is_missing_is_an_error_that_says_what_to_call() {
        let store = PgStore::new(pool().await);
        let error = store.check_schema().await.expect_err("no tables");
        assert_eq!(error.kind(), ErrorKind::Schema);
        assert!(error.to_string().contains("PgStore::migrate"), "{error}");
    }
}

mod claims {
    use super::*;

    async fn execute(store: &PgStore, script: &'static str) {
        let done = sqlx::raw_sql(script).execute(store.pool()).await;
        done.expect("executed");
    }

    fn request(rows: u32) -> ClaimRequest {
        let rows = NonZeroU32::new(rows).expect("rows");
        ClaimRequest::new(rows, Duration::from_secs(60))
    }

    /// Claims and publishes until an event of this type comes, and says after how many claims.
    async fn claims_until(store: &PgStore, rows: u32, event_type: &str) -> u32 {
        for claims in 1..=20 {
            let claim = store.claim(&request(rows)).await.expect("claimed");
            if claim
                .events
                .iter()
                .any(|one| one.event.event_type == event_type)
            {
                return claims;
            }
            let published: Vec<Settlement> = claim
                .events
                .iter()
                .map(|one| Settlement::new(one.lease, Outcome::Published))
                .collect();
            store.settle(&published).await.expect("settled");
        }
        panic!("no {event_type} came");
    }

    #[tokio::test]
    async fn find_a_free_destination_behind_600_held_ones_with_parked_rows() {
        let store = store().await;
        execute(
            &store,
            "INSERT INTO outbox_destinations (destination, hold_until)
             SELECT 'd' || n, 'infinity' FROM generate_series(1, 600) n;
             INSERT INTO outbox_events (id, event_type, destination, payload, shape)
             SELECT gen_random_uuid(), 'Held', 'd' || n, 'x', 3 FROM generate_series(1, 600) n;
             INSERT INTO outbox_events (id, event_type, destination, payload, shape)
             VALUES (gen_random_uuid(), 'Free', 'z', 'x', 3)",
        )
        .await;
        claims_until(&store, 100, "Free").await;
    }

    #[tokio::test]
    async fn find_a_due_key_behind_those_of_500_held_destinations() {
        let store = store().await;
        execute(
            &store,
            "INSERT INTO outbox_destinations (destination, hold_until)
             SELECT 'd' || n, 'infinity' FROM generate_series(1, 500) n;
             INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
             SELECT gen_random_uuid(), 'Held', 'd' || n % 500 + 1, n::text, 'x', 2
             FROM generate_series(1, 16000) n;
             INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
             VALUES (gen_random_uuid(), 'Free', 'z', 'k', 'x', 2)",
        )
        .await;
        // A claim walks for 200 ms: one or two of them do, more on a busy machine.
        claims_until(&store, 100, "Free").await;
    }

    /// As when their answers were lost, the last one that of a walk that went round.
    #[tokio::test]
    async fn of_keyed_events_are_released_wherever_they_began() {
        let store = store().await;
        let fill = "INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
            SELECT gen_random_uuid(), 'T', 'd', gen_random_uuid()::text, 'x', 2
            FROM generate_series(1, 30000)";
        execute(&store, fill).await;
        let mut claimed = 0;
        let mut last = request(1000);
        while claimed < 28_000 {
            last = request(1000);
            claimed += store.claim(&last).await.expect("claimed").events.len();
        }
        let released = || store.release_claim(last.token);
        let again = request(1000);
        assert!(released().await.expect("released") >= 500);
        assert_eq!(released().await.expect("released"), 0);

        execute(&store, fill).await;
        let round = request(10_000);
        let claim = store.claim(&round).await.expect("claimed");
        let released = store.release_claim(round.token).await.expect("released");
        assert_eq!(released, claim.events.len() as u64);
        let released = store.release_claim(again.token).await.expect("released");
        assert_eq!(released, 0);
    }

    /// Events that a claim of keys brings, and guards that it holds until it commits.
    async fn guarded(store: &PgStore, careful: bool) -> (usize, i64) {
        let mut tx = store.pool().begin().await.expect("begun");
        let rows = sqlx::query(
            "SELECT FROM outbox_claim_keyed_v1(gen_random_uuid(), '1 min', 100, 1000000, true,
                 '', -9223372036854775808, NULL, NULL, NULL, $1, -8, 7) WHERE shape >= 0",
        )
        .bind(careful)
        .fetch_all(&mut *tx)
        .await
        .expect("claimed");
        let guards = sqlx::query_scalar(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        )
        .fetch_one(&mut *tx)
        .await
        .expect("locks");
        (rows.len(), guards)
    }

    #[tokio::test]
    async fn of_keys_take_a_guard_where_something_is_to_be_had_if_they_are_careful() {
        let store = store().await;
        execute(
            &store,
            "INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
             SELECT gen_random_uuid(), 'Keyed', 'd', 'k', 'x', 2 FROM generate_series(1, 20)",
        )
        .await;
        let claim = store.claim(&request(10)).await.expect("claimed");
        assert_eq!(claim.events.len(), 10);
        assert_eq!(guarded(&store, false).await, (0, 1));
        assert_eq!(guarded(&store, true).await, (0, 0));
        let leases: Vec<_> = claim.events.iter().map(|one| one.lease).collect();
        store.release(&leases).await.expect("released");
        assert_eq!(guarded(&store, true).await, (20, 1));
    }

    /// A relay that takes it for nothing would stop while events are due.
    #[tokio::test]
    async fn of_keys_that_another_claim_guards_say_that_there_is_more() {
        let store = store().await;
        let mut conn = store.pool().acquire().await.expect("acquired");
        let event = event().key("k");
        store.enqueue(&mut conn, event).await.expect("enqueued");
        drop(conn);
        let mut other = store.pool().begin().await.expect("begun");
        sqlx::query(
            "SELECT pg_advisory_xact_lock(
                 'outbox_events'::regclass::oid::bigint::bit(32)::integer, stripe)
             FROM generate_series(-8, 7) stripe",
        )
        .execute(&mut *other)
        .await
        .expect("guarded");
        // From the second one on, they look before they lock.
        for _ in 0..3 {
            let claim = store.claim(&request(10)).await.expect("claimed");
            assert_eq!(claim.events.len(), 0);
            assert_eq!(claim.next_due, Some(Duration::ZERO));
        }
        other.commit().await.expect("committed");
        let claim = store.claim(&request(10)).await.expect("claimed");
        assert_eq!(claim.events.len(), 1);
        let claim = store.claim(&request(10)).await.expect("claimed");
        assert_eq!((claim.events.len(), claim.next_due), (0, None));
    }

    #[tokio::test]
    async fn of_a_short_key_hold_it_behind_many_late_commits() {
        let store = store().await;
        execute(
            &store,
            "SELECT setval('outbox_events_seq', 1000);
             INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
             SELECT gen_random_uuid(), 'Early', 'd', 'k', 'x', 2 FROM generate_series(1, 2)",
        )
        .await;
        let early = store.claim(&request(10)).await.expect("claimed").events;
        assert_eq!(early.len(), 2);
        execute(
            &store,
            "INSERT INTO outbox_events (seq, id, event_type, destination, key, payload, shape)
             SELECT n, gen_random_uuid(), 'Late', 'd', 'k', 'x', 2 FROM generate_series(1, 400) n",
        )
        .await;
        for _ in 0..3 {
            let claim = store.claim(&request(100)).await.expect("claimed");
            assert_eq!(claim.events.len(), 0);
        }
        let leases: Vec<_> = early.iter().map(|one| one.lease).collect();
        store.release(&leases).await.expect("released");
        let late = store.claim(&request(100)).await.expect("claimed").events;
        assert_eq!(late.first().map(|one| one.lease.seq), Some(1));
    }

    #[tokio::test]
    async fn give_a_large_keyed_event_its_turn_beside_many_large_ones_without_a_key() {
        let store = store().await;
        execute(
            &store,
            "INSERT INTO outbox_events (id, event_type, destination, payload, shape)
             SELECT gen_random_uuid(), 'Fresh', 'd', decode(repeat('ab', 400000), 'hex'), 0
             FROM generate_series(1, 400);
             INSERT INTO outbox_events (id, event_type, destination, key, payload, shape)
             VALUES (gen_random_uuid(), 'Keyed', 'd', 'k', decode(repeat('ab', 900000), 'hex'), 2)",
        )
        .await;
        let claims = claims_until(&store, 100, "Keyed").await;
        assert!(claims <= 3, "{claims}");
    }
}
