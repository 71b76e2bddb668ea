//! What stores find around them: settings of servers, databases and sessions, other tools, and
//! connections without a transaction.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

mod a_database_that_can_only_be_read;
mod isolation;
#[path = "../harness/on.rs"]
mod on;
#[path = "../harness/open.rs"]
mod open;
mod privileges;

use std::num::NonZeroU32;
use std::time::Duration;

use open::Open;
use outbox_core::sql::{Migration, TableNames, mysql, pg};
use outbox_core::{
    ClaimRequest, DeadLetterFilter, DeadLetters, Enqueue, ErrorKind, Maintenance, NewEvent,
    OutboxStore, Outcome, Settlement,
};
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Connection, Database, Executor, MySqlPool, PgPool};
use outbox_sqlx::{MySqlStore, PgStore, SqliteStore};
use tests::{MySqlServer, PgServer};

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("https://ci.example/hooks")
}

fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(10).unwrap(), Duration::from_secs(60))
}

/// Claims and publishes; returns how many.
async fn publish(store: &impl OutboxStore) -> usize {
    let claim = store.claim(&request()).await.unwrap();
    let settle = |one: &outbox_core::Claimed| Settlement::new(one.lease, Outcome::Published);
    let batch: Vec<Settlement> = claim.events.iter().map(settle).collect();
    store.settle(&batch).await.unwrap();
    batch.len()
}

/// Publishes until nothing is open; returns how many.
async fn drain(store: &(impl OutboxStore + Maintenance)) -> usize {
    let mut drained = 0;
    while store.stats(10).await.unwrap().pending.value > 0 {
        drained += publish(store).await;
    }
    drained
}

async fn run<DB>(url: &str, statements: &[&str])
where
    DB: Database,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    let mut conn = DB::Connection::connect(url).await.unwrap();
    for statement in statements {
        let statement = AssertSqlSafe((*statement).to_owned());
        conn.execute(sqlx::raw_sql(statement)).await.unwrap();
    }
}

mod names {
    use super::*;

    /// The longest prefix that is allowed, ending in letters of two bytes.
    fn longest() -> TableNames {
        TableNames::new(format!("{}éé", "x".repeat(32))).unwrap()
    }

    async fn work<DB: Database, S>(store: &S, conn: &mut DB::Connection)
    where
        S: Enqueue<DB::Connection> + OutboxStore + Maintenance,
    {
        let list = vec![event().key("k"), event().dedup_key("d"), event()];
        store.enqueue_all(conn, list).await.unwrap();
        assert_eq!(drain(store).await, 3);
    }

    #[tokio::test]
    async fn may_be_as_long_as_they_may_on_postgres() {
        let url = PgServer::shared().create_database();
        let pool = PgPool::connect(&url).await.unwrap();
        let names = longest().schema("s".repeat(63)).unwrap();
        let store = PgStore::new(pool.clone()).tables(names);
        store.migrate().await.unwrap();
        store.migrate().await.unwrap();
        store.enable_notify_trigger().await.unwrap();
        store.notify().await.unwrap();
        let mut conn = pool.acquire().await.unwrap();
        work::<sqlx::Postgres, _>(&store, &mut conn).await;
        store.disable_notify_trigger().await.unwrap();
    }

    #[tokio::test]
    async fn may_be_as_long_as_they_may_on_mysql() {
        let url = MySqlServer::shared().create_database();
        let pool = MySqlPool::connect(&url).await.unwrap();
        let store = MySqlStore::new(pool.clone()).tables(longest());
        store.migrate().await.unwrap();
        store.migrate().await.unwrap();
        let mut conn = pool.acquire().await.unwrap();
        work::<sqlx::MySql, _>(&store, &mut conn).await;
    }

    /// Of services that share a schema, each with its own prefix, all may be the first.
    #[tokio::test]
    async fn of_one_new_schema_and_many_prefixes_are_migrated_at_once() {
        for _ in 0..5 {
            let url = PgServer::shared().create_database();
            let pool = PgPool::connect(&url).await.unwrap();
            let store = |n: usize| {
                let names = TableNames::new(format!("service {n}")).unwrap();
                PgStore::new(pool.clone()).tables(names.schema("My-Schema").unwrap())
            };
            let stores: Vec<PgStore> = (0..6).map(store).collect();
            let all = stores.iter().map(PgStore::migrate);
            for migrated in futures::future::join_all(all).await {
                migrated.unwrap();
            }
        }
    }
}

mod without_a_transaction {
    use super::*;

    /// An enqueue that fails takes no de-duplication key with it: the next one with that key would
    /// be a duplicate of an event that is nowhere.
    async fn a_failed_enqueue_takes_no_key<DB: Database, S>(store: &S, conn: &mut DB::Connection)
    where
        S: Enqueue<DB::Connection> + OutboxStore + Maintenance,
    {
        let open = store.enqueue(conn, event()).await.unwrap().id;
        let keys = |n: usize| event().dedup_key(n.to_string());
        let mut list: Vec<NewEvent> = (0..4).map(keys).collect();
        list.push(event().id(open).dedup_key("4"));
        let refused = store.enqueue(conn, list[4].clone()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidEvent, "{refused:?}");
        store.enqueue_all(conn, list).await.unwrap_err();

        // Whatever was stored of them, each key has its event now.
        let again = store.enqueue_all(conn, (0..5).map(keys).collect()).await;
        let duplicates = again.unwrap().iter().filter(|one| one.duplicate).count();
        let stored = u64::try_from(5 - duplicates).unwrap();
        let pending = store.stats(100).await.unwrap().pending.value;
        assert_eq!(pending, 6, "{duplicates} duplicates, {stored} stored");
    }

    #[tokio::test]
    async fn a_failed_enqueue_takes_no_dedup_key_on_postgres() {
        let (store, mut conn, _) = PgStore::open().await;
        a_failed_enqueue_takes_no_key::<sqlx::Postgres, _>(&store, &mut conn).await;
    }

    #[tokio::test]
    async fn a_failed_enqueue_takes_no_dedup_key_on_mysql() {
        let (store, mut conn, _) = MySqlStore::open().await;
        a_failed_enqueue_takes_no_key::<sqlx::MySql, _>(&store, &mut conn).await;
    }

    #[tokio::test]
    async fn a_failed_enqueue_takes_no_dedup_key_on_sqlite() {
        let (store, mut conn, _folder) = SqliteStore::open().await;
        a_failed_enqueue_takes_no_key::<sqlx::Sqlite, _>(&store, &mut conn).await;
    }
}

mod savepoints {
    use super::*;

    /// What was enqueued after a savepoint goes with it, its de-duplication key too.
    async fn roll_back_alone<DB: Database, S>(store: &S, pool: &sqlx::Pool<DB>)
    where
        S: Enqueue<DB::Connection> + OutboxStore + Maintenance,
    {
        let keyed = |key: &str| event().dedup_key(key);
        let mut tx = pool.begin().await.unwrap();
        let first = store.enqueue(&mut tx, keyed("a")).await.unwrap();
        let mut inner = tx.begin().await.unwrap();
        let list = vec![keyed("a"), keyed("b"), keyed("b"), event()];
        let answers = store.enqueue_all(&mut inner, list).await.unwrap();
        let duplicates: Vec<bool> = answers.iter().map(|one| one.duplicate).collect();
        assert_eq!(duplicates, [true, false, true, false]);
        assert_eq!(answers[0].id, first.id);
        inner.rollback().await.unwrap();

        let mut inner = tx.begin().await.unwrap();
        assert!(
            !store
                .enqueue(&mut inner, keyed("b"))
                .await
                .unwrap()
                .duplicate
        );
        assert!(
            store
                .enqueue(&mut inner, keyed("a"))
                .await
                .unwrap()
                .duplicate
        );
        inner.commit().await.unwrap();
        assert!(store.enqueue(&mut tx, keyed("b")).await.unwrap().duplicate);
        tx.commit().await.unwrap();
        assert_eq!(drain(store).await, 2);
    }

    #[tokio::test]
    async fn roll_back_what_came_after_them_on_postgres() {
        let (store, _, _) = PgStore::open().await;
        roll_back_alone(&store, store.pool()).await;
    }

    #[tokio::test]
    async fn roll_back_what_came_after_them_on_mysql() {
        let (store, _, _) = MySqlStore::open().await;
        roll_back_alone(&store, store.pool()).await;
    }

    #[tokio::test]
    async fn roll_back_what_came_after_them_on_sqlite() {
        let (store, _, _folder) = SqliteStore::open().await;
        roll_back_alone(&store, store.pool()).await;
    }
}

mod files_of_sqlite {
    use super::*;

    /// Processes that start at once, none of which finds a file.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn may_be_made_by_many_at_once() {
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("db");
            let one = || {
                let path = path.clone();
                tokio::spawn(async move {
                    let store = SqliteStore::connect(path).await?;
                    store.migrate().await?;
                    let mut tx = store.begin_immediate().await?;
                    store.enqueue(&mut tx, event()).await?;
                    tx.commit().await.unwrap();
                    Ok::<_, outbox_core::Error>(())
                })
            };
            let all: Vec<_> = (0..8).map(|_| one()).collect();
            for done in all {
                done.await.unwrap().unwrap();
            }
            let store = SqliteStore::connect(path).await.unwrap();
            assert_eq!(drain(&store).await, 8);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn may_be_made_by_many_at_once_through_diesel() {
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("db").display().to_string();
            let open = || outbox_diesel::SqliteStore::open(path.clone());
            let all: Vec<_> = (0..8).map(|_| tokio::spawn(open())).collect();
            for opened in all {
                opened.await.unwrap().map(drop).unwrap();
            }
        }
    }

    #[tokio::test]
    async fn may_be_in_memory_on_one_connection() {
        let pool = sqlx::sqlite::SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect("sqlite::memory:")
            .await
            .unwrap();
        let store = SqliteStore::new(pool).unwrap();
        store.migrate().await.unwrap();
        let mut conn = store.pool().acquire().await.unwrap();
        store.enqueue(&mut *conn, event().key("k")).await.unwrap();
        drop(conn);
        assert_eq!(drain(&store).await, 1);
    }
}

mod a_discard {
    use super::*;

    /// The record that operators find in the table of discards: one reason, with the letter's own.
    async fn is_recorded<DB, S>(store: &S, conn: &mut DB::Connection, text: &str)
    where
        DB: Database,
        for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
        for<'r> (i64, String, String, String): sqlx::FromRow<'r, DB::Row>,
        for<'q> DB::Arguments: sqlx::IntoArguments<DB>,
        S: Enqueue<DB::Connection> + OutboxStore + DeadLetters,
    {
        store.enqueue(conn, event().key("k")).await.unwrap();
        let claim = store.claim(&request()).await.unwrap();
        let lease = claim.events[0].lease;
        let dead = Outcome::Dead {
            reason: outbox_core::DeathReason::Gone,
            error: "410 Gone".to_owned(),
        };
        store.settle(&[Settlement::new(lease, dead)]).await.unwrap();
        let all = DeadLetterFilter::all();
        let discarded = store.discard(&all, 10, "ticket 4711").await.unwrap();
        assert_eq!(discarded, 1);
        let columns = ["death_reason", "last_error", "discard_reason"];
        let columns = columns
            .map(|column| format!("CAST({column} AS {text})"))
            .join(", ");
        let query = AssertSqlSafe(format!("SELECT seq, {columns} FROM outbox_discards"));
        let found: Vec<(i64, String, String, String)> =
            sqlx::query_as(query).fetch_all(conn).await.unwrap();
        let words = ["gone", "410 Gone", "ticket 4711"].map(str::to_owned);
        let [reason, error, why] = words;
        assert_eq!(found, [(lease.seq, reason, error, why)]);
    }

    #[tokio::test]
    async fn is_recorded_with_its_reason_on_postgres() {
        let (store, mut conn, _) = PgStore::open().await;
        is_recorded::<sqlx::Postgres, _>(&store, &mut conn, "text").await;
    }

    #[tokio::test]
    async fn is_recorded_with_its_reason_on_mysql() {
        let (store, mut conn, _) = MySqlStore::open().await;
        is_recorded::<sqlx::MySql, _>(&store, &mut conn, "char").await;
    }

    #[tokio::test]
    async fn is_recorded_with_its_reason_on_sqlite() {
        let (store, mut conn, _folder) = SqliteStore::open().await;
        is_recorded::<sqlx::Sqlite, _>(&store, &mut conn, "text").await;
    }
}

mod other_tools {
    use super::*;

    /// As they run a file: all of it by the simple protocol, in a transaction.
    async fn apply<DB: Database>(pool: &sqlx::Pool<DB>, steps: &[Migration])
    where
        for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    {
        for step in steps {
            let mut tx = pool.begin().await.unwrap();
            let text = AssertSqlSafe(step.sql.clone());
            (&mut *tx).execute(sqlx::raw_sql(text)).await.unwrap();
            tx.commit().await.unwrap();
        }
    }

    #[tokio::test]
    async fn may_migrate_postgres() {
        let url = PgServer::shared().create_database();
        let store = PgStore::new(PgPool::connect(&url).await.unwrap());
        apply(store.pool(), &pg::migrations(&TableNames::default())).await;
        store.check_schema().await.unwrap();
        store.migrate().await.unwrap();
        let mut conn = store.pool().acquire().await.unwrap();
        store.enqueue(&mut *conn, event().key("k")).await.unwrap();
        assert_eq!(drain(&store).await, 1);
    }

    #[tokio::test]
    async fn may_migrate_mysql_and_repeat_a_step() {
        let url = MySqlServer::shared().create_database();
        let store = MySqlStore::new(MySqlPool::connect(&url).await.unwrap());
        let steps = mysql::migrations(&TableNames::default());
        apply(store.pool(), &steps[..1]).await;
        apply(store.pool(), &steps).await;
        store.check_schema().await.unwrap();
        store.migrate().await.unwrap();
        let mut conn = store.pool().acquire().await.unwrap();
        store.enqueue(&mut *conn, event().key("k")).await.unwrap();
        assert_eq!(drain(&store).await, 1);
    }
}
