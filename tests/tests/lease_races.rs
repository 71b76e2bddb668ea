//! Extensions that come late, beside claims of the same key on other connections: a lease ends, an
//! earlier event of its key is there, and an extension is under way.

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    ClaimRequest, Claimed, DeadLetterFilter, DeadLetters, DeathReason, Enqueue, LeaseStatus,
    NewEvent, OutboxStore, Outcome, Replay, Settlement,
};

const LEASE: Duration = Duration::from_secs(600);
/// Events of the key that come back before the run: one, and more than a claim reads at once.
const BEFORE: [usize; 2] = [1, 60];

async fn claim(store: &impl OutboxStore, rows: u32) -> Vec<Claimed> {
    let rows = NonZeroU32::new(rows).expect("rows");
    let request = ClaimRequest::new(rows, LEASE);
    store.claim(&request).await.expect("claimed").events
}

async fn take_one(store: &impl OutboxStore) -> Claimed {
    for _ in 0..10 {
        if let Some(one) = claim(store, 1).await.pop() {
            return one;
        }
    }
    panic!("nothing came");
}

async fn nothing_is_claimed(store: &impl OutboxStore) {
    for rows in [1, 2, 100] {
        let came = claim(store, rows).await;
        assert!(came.is_empty(), "a second run of the key: {came:?}");
    }
}

async fn settle(store: &impl OutboxStore, claimed: &Claimed, outcome: Outcome) {
    let batch = [Settlement::new(claimed.lease, outcome)];
    assert_eq!(
        store.settle(&batch).await.expect("settled"),
        [LeaseStatus::Ours]
    );
}

/// A run of two, before which other events of its key come back.
async fn run_with<C, S>(store: &S, conn: &mut C, before: usize) -> [Claimed; 2]
where
    S: OutboxStore + DeadLetters + Enqueue<C>,
{
    let events = (0..before + 2).map(|_| NewEvent::bytes("T", "x").to("d").key("k"));
    let stored = store.enqueue_all(conn, events.collect()).await;
    stored.expect("enqueued");
    for _ in 0..before {
        let outcome = Outcome::Dead {
            reason: DeathReason::Rejected,
            error: "400".to_owned(),
        };
        settle(store, &take_one(store).await, outcome).await;
    }
    let run = claim(store, 2).await.try_into().expect("a run of two");
    let all = Replay::new(DeadLetterFilter::all());
    let replayed = store.replay(&all).await.expect("replayed");
    assert_eq!(replayed, before as u64);
    nothing_is_claimed(store).await;
    run
}

mod pg {
    use super::*;
    use outbox_sqlx::PgStore;
    use outbox_sqlx::sqlx::{self, AssertSqlSafe, Connection, Executor, PgConnection, PgPool};
    use tests::{PgServer, pg_advance};

    struct Scene {
        store: PgStore,
        /// Another session.
        other: PgConnection,
        run: [Claimed; 2],
    }

    impl Scene {
        async fn new(before: usize) -> Self {
            let url = PgServer::shared().create_database();
            let store = PgStore::new(PgPool::connect(&url).await.expect("connected"));
            store.migrate().await.expect("migrated");
            let mut other = PgConnection::connect(&url).await.expect("connected");
            let run = run_with(&store, &mut other, before).await;
            Self { store, other, run }
        }

        async fn leases_end(&self) {
            let statements = pg_advance(LEASE);
            let done = self.store.pool().execute(AssertSqlSafe(statements)).await;
            done.expect("advanced");
        }

        /// The other session does in a transaction what an extension does that began in time.
        async fn other_extends(&mut self, seq: i64) {
            let extend = format!(
                "BEGIN; UPDATE outbox_events SET lease_until = now() + interval '1 hour'
                 WHERE seq = {seq}"
            );
            self.other_does(extend).await;
        }

        async fn other_does(&mut self, statements: impl Into<String>) {
            let statements = sqlx::raw_sql(AssertSqlSafe(statements.into()));
            statements.execute(&mut self.other).await.expect("done");
        }
    }

    #[tokio::test]
    async fn a_claim_keeps_off_a_key_while_an_extension_is_under_way() {
        for before in BEFORE {
            let mut scene = Scene::new(before).await;
            scene.leases_end().await;
            let [head, _] = &scene.run;
            scene.other_extends(head.lease.seq).await;
            nothing_is_claimed(&scene.store).await;
            scene.other_does("COMMIT").await;
            nothing_is_claimed(&scene.store).await;
        }
    }

    /// What one claim has looked through, the next one passes over.
    #[tokio::test]
    async fn a_claim_remembers_no_row_as_free_while_an_extension_is_under_way() {
        for before in BEFORE {
            let mut scene = Scene::new(before).await;
            scene.leases_end().await;
            let [head, tail] = scene.run.clone();
            scene.other_extends(tail.lease.seq).await;
            scene.other_does("COMMIT").await;
            scene.other_extends(head.lease.seq).await;
            nothing_is_claimed(&scene.store).await;
            settle(&scene.store, &tail, Outcome::Published).await;
            scene.other_does("COMMIT").await;
            nothing_is_claimed(&scene.store).await;
        }
    }

    #[tokio::test]
    async fn an_extension_that_waits_until_its_lease_has_ended_is_refused() {
        let mut scene = Scene::new(1).await;
        let [head, _] = scene.run.clone();
        let seq = head.lease.seq;
        scene
            .other_does(format!(
                "BEGIN; SELECT FROM outbox_events WHERE seq = {seq} FOR UPDATE"
            ))
            .await;
        let store = scene.store.clone();
        let late = tokio::spawn(async move { store.extend(&[head.lease], LEASE).await });
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock')";
        while !sqlx::query_scalar::<_, bool>(waits)
            .fetch_one(scene.store.pool())
            .await
            .expect("told")
        {
            tokio::task::yield_now().await;
        }
        scene
            .other_does(
                "UPDATE outbox_events SET lease_until = clock_timestamp()
                 WHERE lease_until IS NOT NULL; COMMIT",
            )
            .await;
        let answers = late.await.expect("no panic").expect("answered");
        assert_eq!(answers, [LeaseStatus::Lost]);
        assert!(take_one(&scene.store).await.lease.seq < seq);
        nothing_is_claimed(&scene.store).await;
    }

    /// A late settle or extension may hold a row that waits by now.
    #[tokio::test]
    async fn a_claim_waits_for_no_session_and_ends_its_run_at_a_row_that_one_holds() {
        for lock in ["FOR UPDATE", "FOR SHARE"] {
            let mut scene = Scene::new(1).await;
            for claimed in &scene.run {
                settle(&scene.store, claimed, Outcome::Release).await;
            }
            let [_, tail] = scene.run.clone();
            let seq = tail.lease.seq;
            let lock_tail = format!("SELECT FROM outbox_events WHERE seq = {seq} {lock}");
            scene.other_does(format!("BEGIN; {lock_tail}")).await;
            let mut third = scene.store.pool().begin().await.expect("begun");
            if lock == "FOR SHARE" {
                // Of two lockers, the row names neither.
                let shared = third.execute(AssertSqlSafe(lock_tail)).await;
                shared.expect("locked");
            }
            let claimed = tokio::time::timeout(LEASE / 20, claim(&scene.store, 10)).await;
            let claimed = claimed.expect("a claim that waits for nobody");
            let seqs: Vec<i64> = claimed.iter().map(|one| one.lease.seq).collect();
            assert_eq!(seqs, [seq - 2, seq - 1]);
            third.rollback().await.expect("rolled back");
            let others = "SELECT FROM outbox_events FOR UPDATE; COMMIT";
            scene.other_does(others).await;
        }
    }

    /// Its clock is that of its transaction's start.
    #[tokio::test]
    async fn an_extension_in_an_older_transaction_than_a_claim_is_refused() {
        let mut scene = Scene::new(1).await;
        let [head, _] = scene.run.clone();
        scene.other_does("BEGIN; SELECT now()").await;
        let ends = "UPDATE outbox_events SET lease_until = clock_timestamp()
                    WHERE lease_until IS NOT NULL";
        scene.store.pool().execute(ends).await.expect("ended");
        assert!(take_one(&scene.store).await.lease.seq < head.lease.seq);
        let statements = outbox_core::sql::pg::Statements::new(
            &outbox_core::sql::TableNames::default(),
            outbox_core::Retention::Keep,
        );
        let extended: Option<Vec<i64>> =
            sqlx::query_scalar(AssertSqlSafe(statements.settle.extend.to_string()))
                .bind(vec![head.lease.seq])
                .bind(vec![sqlx::types::Uuid::from_bytes(
                    *head.lease.token.as_bytes(),
                )])
                .bind(1_000_000_i64)
                .fetch_one(&mut scene.other)
                .await
                .expect("answered");
        assert_eq!(extended, None);
        scene.other_does("COMMIT").await;
        nothing_is_claimed(&scene.store).await;
    }
}

mod mysql {
    use super::*;
    use outbox_sqlx::MySqlStore;
    use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
    use outbox_sqlx::sqlx::{self, AssertSqlSafe, Connection, MySqlConnection};
    use tests::{MySqlServer, mysql_advance};

    const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))";

    struct Scene {
        store: MySqlStore,
        /// Another session.
        other: MySqlConnection,
        run: [Claimed; 2],
    }

    impl Scene {
        async fn new(before: usize) -> Self {
            let url = MySqlServer::shared().create_database();
            let pool = MySqlPoolOptions::new().max_connections(1).connect(&url);
            let store = MySqlStore::new(pool.await.expect("connected"));
            store.migrate().await.expect("migrated");
            let mut other = MySqlConnection::connect(&url).await.expect("connected");
            let run = run_with(&store, &mut other, before).await;
            Self { store, other, run }
        }

        async fn leases_end(&self) {
            let statements = sqlx::raw_sql(AssertSqlSafe(mysql_advance(LEASE)));
            statements
                .execute(self.store.pool())
                .await
                .expect("advanced");
        }

        async fn other_does(&mut self, statements: impl Into<String>) {
            let statements = sqlx::raw_sql(AssertSqlSafe(statements.into()));
            statements.execute(&mut self.other).await.expect("done");
        }

        /// The session that the store has.
        async fn session(&self) -> u64 {
            let session = sqlx::query_scalar("SELECT CONNECTION_ID()");
            let session = session.fetch_one(self.store.pool()).await;
            session.expect("told")
        }

        /// Whether this session waits for a row.
        async fn waits(&mut self, session: u64) -> bool {
            let waiting = sqlx::query_scalar::<_, i64>(
                "SELECT COUNT(*) FROM information_schema.innodb_trx
                 WHERE trx_mysql_thread_id = ? AND trx_state = 'LOCK WAIT'",
            );
            let waiting = waiting.bind(session).fetch_one(&mut self.other).await;
            waiting.expect("told") > 0
        }
    }

    #[tokio::test]
    async fn a_claim_keeps_off_a_key_while_an_extension_is_under_way() {
        for before in BEFORE {
            let mut scene = Scene::new(before).await;
            scene.leases_end().await;
            let [head, _] = &scene.run;
            let extend = format!(
                "START TRANSACTION; UPDATE outbox_events SET lease_until = {NOW} + 3600000000
                 WHERE seq = {}",
                head.lease.seq
            );
            scene.other_does(extend).await;
            nothing_is_claimed(&scene.store).await;
            scene.other_does("COMMIT").await;
            nothing_is_claimed(&scene.store).await;
        }
    }

    #[tokio::test]
    async fn an_extension_that_waits_until_its_lease_has_ended_is_refused() {
        let mut scene = Scene::new(1).await;
        let [head, _] = scene.run.clone();
        let seq = head.lease.seq;
        scene
            .other_does(format!(
                "START TRANSACTION; SELECT seq FROM outbox_events WHERE seq = {seq} FOR UPDATE"
            ))
            .await;
        let session = scene.session().await;
        let store = scene.store.clone();
        let late = tokio::spawn(async move { store.extend(&[head.lease], LEASE).await });
        while !scene.waits(session).await {
            // The server renews the answer only where nobody asked for 100 ms.
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        scene
            .other_does(format!(
                "UPDATE outbox_events SET lease_until = {NOW} WHERE lease_until IS NOT NULL; COMMIT"
            ))
            .await;
        let answers = late.await.expect("no panic").expect("answered");
        assert_eq!(answers, [LeaseStatus::Lost]);
        assert!(take_one(&scene.store).await.lease.seq < seq);
        nothing_is_claimed(&scene.store).await;
        drop(scene.other.close().await);
    }
}

mod sqlite {
    use super::*;
    use outbox_core::ManualClock;
    use outbox_sqlx::SqliteStore;
    use outbox_sqlx::sqlx::SqlitePool;

    /// An extension tells the time before it waits for its turn to write: as if by a slower clock.
    #[tokio::test]
    async fn an_extension_that_waited_for_a_claim_of_its_key_is_refused() {
        for before in BEFORE {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let options = SqliteStore::options(folder.path().join("outbox.db"));
            let pool = SqlitePool::connect_with(options).await.expect("opened");
            let (clock, slow) = (ManualClock::new(), ManualClock::new());
            let store = SqliteStore::new(pool).expect("default tables");
            let late = store.clone().clock(slow);
            let store = store.clock(clock.clone());
            store.migrate().await.expect("migrated");
            let mut conn = store.pool().acquire().await.expect("a connection");
            let run = run_with(&store, &mut *conn, before).await;
            drop(conn);
            clock.advance(LEASE);
            assert!(take_one(&store).await.lease.seq < run[0].lease.seq);
            let leases = run.map(|claimed| claimed.lease);
            let answers = late.extend(&leases, LEASE).await.expect("answered");
            assert_eq!(answers, [LeaseStatus::Lost; 2]);
            nothing_is_claimed(&store).await;
        }
    }
}
