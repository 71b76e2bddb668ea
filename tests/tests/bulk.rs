//! How many statements store many events at once, as the databases count them. Beyond what one statement
//! takes (10,000 rows on PostgreSQL, where they have no de-duplication keys; 500 on MariaDB, 2,000 on SQLite; or
//! their bytes), there is another one.

#[path = "harness/at.rs"]
mod at;
#[path = "harness/open.rs"]
mod open;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use at::At;
use diesel::connection::InstrumentationEvent;
use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, AsyncPgConnection};
use open::Open;
use outbox_core::{Enqueue, NewEvent, Retention};
use outbox_sqlx::sqlx::{self, Connection, MySqlConnection, PgConnection};
use tests::{MySqlServer, PgServer};

fn events(count: usize) -> Vec<NewEvent> {
    let event = |n: usize| {
        let event = NewEvent::bytes("T", "x").to("d");
        if n.is_multiple_of(2) {
            event.key(n)
        } else {
            event
        }
    };
    (0..count).map(event).collect()
}

/// The same with a de-duplication key each.
fn once(count: usize) -> Vec<NewEvent> {
    let keyed = |(n, event): (usize, NewEvent)| event.dedup_key(n.to_string());
    events(count).into_iter().enumerate().map(keyed).collect()
}

/// Twenty of a mebibyte, with de-duplication keys that begin so, if any.
fn large(keys: &str) -> Vec<NewEvent> {
    let event = |n: usize| {
        let event = NewEvent::bytes("T", vec![b'x'; 1 << 20]).to("d");
        match keys {
            "" => event,
            keys => event.dedup_key(format!("{keys} {n}")),
        }
    };
    (0..20).map(event).collect()
}

async fn stores<C: Send, S: Enqueue<C>>(store: &S, conn: &mut C, events: Vec<NewEvent>) -> usize {
    let stored = store.enqueue_all(conn, events).await.expect("stored");
    stored.iter().filter(|one| !one.duplicate).count()
}

mod on_postgres {
    use super::*;

    /// The server counts statements that store rows, and what they come in: all that one message of the
    /// client does has the same time.
    const COUNTING: &str = "CREATE TABLE counted (name text, at timestamptz);
        CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO counted VALUES (TG_TABLE_NAME, statement_timestamp()); RETURN NULL;
        END $$;
        CREATE TRIGGER counts AFTER INSERT ON outbox_events
            FOR EACH STATEMENT EXECUTE FUNCTION counts();
        CREATE TRIGGER counts AFTER INSERT ON outbox_dedup
            FOR EACH STATEMENT EXECUTE FUNCTION counts();";

    struct Counted {
        url: String,
        other: PgConnection,
    }

    impl Counted {
        async fn new() -> Self {
            let url = PgServer::shared().create_database();
            outbox_sqlx::PgStore::at(&url, 1, Retention::Keep).await;
            let mut other = PgConnection::connect(&url).await.expect("connected");
            let done = sqlx::raw_sql(COUNTING).execute(&mut other).await;
            done.expect("counting");
            Self { url, other }
        }

        /// Since the last time: statements that store events, those that take keys, and messages.
        async fn counts(&mut self) -> (i64, i64, i64) {
            let counts = sqlx::query_as(
                "WITH gone AS (DELETE FROM counted RETURNING *)
                 SELECT count(*) FILTER (WHERE name = 'outbox_events'),
                    count(*) FILTER (WHERE name = 'outbox_dedup'), count(DISTINCT at) FROM gone",
            );
            counts.fetch_one(&mut self.other).await.expect("counts")
        }

        async fn counts_statements_of<C: Send, S: Enqueue<C>>(&mut self, store: &S, conn: &mut C) {
            assert_eq!(stores(store, conn, events(5_000)).await, 5_000);
            assert_eq!(self.counts().await, (1, 0, 1));
            assert_eq!(stores(store, conn, once(5_000)).await, 5_000);
            assert_eq!(self.counts().await, (1, 1, 1));
            // Half of them again.
            assert_eq!(stores(store, conn, once(10_000)).await, 5_000);
            assert_eq!(self.counts().await, (1, 1, 1));
            assert_eq!(stores(store, conn, events(10_001)).await, 10_001);
            assert_eq!(self.counts().await, (2, 0, 2));
            assert_eq!(stores(store, conn, once(20_001)).await, 10_001);
            assert_eq!(self.counts().await, (1, 1, 1));
            assert_eq!(stores(store, conn, large("")).await, 20);
            assert_eq!(self.counts().await, (2, 0, 2));
            assert_eq!(stores(store, conn, large("large")).await, 20);
            assert_eq!(self.counts().await, (1, 1, 1));
        }
    }

    #[tokio::test]
    async fn five_thousand_events_are_stored_by_one_statement_through_sqlx() {
        let mut counted = Counted::new().await;
        let store = outbox_sqlx::PgStore::at(&counted.url, 1, Retention::Keep).await;
        let mut conn = store.pool().acquire().await.expect("a connection");
        counted.counts_statements_of(&store, &mut *conn).await;
    }

    #[tokio::test]
    async fn five_thousand_events_are_stored_by_one_statement_through_diesel() {
        let mut counted = Counted::new().await;
        let store = outbox_diesel::PgStore::enqueue_only();
        let conn = AsyncPgConnection::establish(&counted.url).await;
        let mut conn = conn.expect("connected");
        counted.counts_statements_of(&store, &mut conn).await;
    }

    #[tokio::test]
    async fn five_thousand_events_are_stored_by_one_statement_through_a_plain_connection() {
        let mut counted = Counted::new().await;
        let url = counted.url.clone();
        let enqueue = move || {
            let store = outbox_diesel::PgStore::enqueue_only();
            let conn = <AsyncConnectionWrapper<AsyncPgConnection> as diesel::Connection>::establish;
            let mut conn = conn(&url).expect("connected");
            let stored = store.enqueue_all_sync(&mut conn, &events(5_000));
            stored.expect("stored");
            let stored = store.enqueue_all_sync(&mut conn, &once(5_000));
            stored.expect("stored");
        };
        tokio::task::spawn_blocking(enqueue)
            .await
            .expect("no panic");
        assert_eq!(counted.counts().await, (2, 1, 2));
    }
}

/// Five hundred rows in each insert; de-duplication keys are taken by two statements more.
mod on_mysql {
    use super::*;

    /// How many statements the server has been given, but for this question.
    struct Counted {
        server: MySqlServer,
        url: String,
        before: u64,
        asking: u64,
    }

    impl Counted {
        fn new() -> Self {
            let server = MySqlServer::start();
            let url = server.create_database();
            let mut counted = Self {
                server,
                url,
                before: 0,
                asking: 0,
            };
            counted.counts();
            counted.asking = counted.counts();
            counted
        }

        /// Since the last time.
        fn counts(&mut self) -> u64 {
            let asked = self
                .server
                .sql("mysql", "SHOW GLOBAL STATUS LIKE 'Questions'");
            let (_, total) = asked.split_once('\t').expect("a number");
            let total = total.parse().expect("a number");
            let since = total - std::mem::replace(&mut self.before, total);
            since - self.asking
        }

        async fn counts_statements_of<C: Send, S: Enqueue<C>>(&mut self, store: &S, conn: &mut C) {
            self.counts();
            assert_eq!(stores(store, conn, events(5_000)).await, 5_000);
            assert_eq!(self.counts(), 10);
            assert_eq!(stores(store, conn, once(5_000)).await, 5_000);
            assert_eq!(self.counts(), 30);
            // All of them again.
            assert_eq!(stores(store, conn, once(5_000)).await, 0);
            assert_eq!(self.counts(), 20);
        }
    }

    #[tokio::test]
    async fn five_thousand_events_are_stored_by_ten_statements_through_sqlx() {
        let mut counted = Counted::new();
        let store = outbox_sqlx::MySqlStore::at(&counted.url, 1, Retention::Keep).await;
        let conn = MySqlConnection::connect(&counted.url).await;
        let mut conn = conn.expect("connected");
        counted.counts_statements_of(&store, &mut conn).await;
    }

    #[tokio::test]
    async fn five_thousand_events_are_stored_by_ten_statements_through_diesel() {
        let mut counted = Counted::new();
        let store = outbox_diesel::MySqlStore::at(&counted.url, 1, Retention::Keep).await;
        let conn = AsyncMysqlConnection::establish(&counted.url).await;
        let mut conn = conn.expect("connected");
        counted.counts_statements_of(&store, &mut conn).await;
    }
}

/// Two thousand rows in an insert, then a hundred; it takes de-duplication keys too. Who has those that are
/// taken is asked for by another one.
mod on_sqlite {
    use super::*;

    type Diesel = SyncConnectionWrapper<diesel::SqliteConnection>;

    #[derive(Clone, Default)]
    struct Counted(Arc<AtomicUsize>);

    impl Counted {
        fn one_more(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        /// Since the last time.
        fn counts(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }

        /// Of queries that a connection of diesel makes.
        fn counter(&self) -> impl FnMut(InstrumentationEvent<'_>) + Send + use<> {
            let counted = self.clone();
            move |event| {
                if let InstrumentationEvent::StartQuery { .. } = event {
                    counted.one_more();
                }
            }
        }
    }

    /// Each statement that writes commits.
    #[tokio::test]
    async fn five_thousand_events_are_stored_by_twelve_statements_through_sqlx() {
        let (store, mut conn, _folder) = outbox_sqlx::SqliteStore::open().await;
        let counted = Counted::default();
        let commits = counted.clone();
        let mut handle = conn.lock_handle().await.expect("a handle");
        handle.set_commit_hook(move || {
            commits.one_more();
            true
        });
        drop(handle);
        assert_eq!(stores(&store, &mut *conn, events(5_000)).await, 5_000);
        assert_eq!(counted.counts(), 12);
        assert_eq!(stores(&store, &mut *conn, once(5_000)).await, 5_000);
        assert_eq!(counted.counts(), 12);
    }

    #[tokio::test]
    async fn five_thousand_events_are_stored_by_twelve_statements_through_diesel() {
        let (_store, _conn, folder) = outbox_sqlx::SqliteStore::open().await;
        let path = folder.path().join("db").display().to_string();
        let counted = Counted::default();
        let store = outbox_diesel::SqliteStore::enqueue_only().expect("a store");
        let conn = Diesel::establish(&path).await;
        let mut conn = conn.expect("opened");
        conn.set_instrumentation(counted.counter());
        assert_eq!(stores(&store, &mut conn, events(5_000)).await, 5_000);
        assert_eq!(counted.counts(), 12);
        assert_eq!(stores(&store, &mut conn, once(5_000)).await, 5_000);
        assert_eq!(counted.counts(), 12);
        // All of them again.
        assert_eq!(stores(&store, &mut conn, once(5_000)).await, 0);
        assert_eq!(counted.counts(), 24);

        use diesel::Connection;
        let mut plain = diesel::SqliteConnection::establish(&path).expect("opened");
        plain.set_instrumentation(counted.counter());
        let stored = store.enqueue_all_sync(&mut plain, &events(5_000));
        stored.expect("stored");
        assert_eq!(counted.counts(), 12);
    }
}
