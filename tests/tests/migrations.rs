//! Migrations: by hand, from an older schema, by many at once, in a schema with an odd name, and cut
//! short.

#[path = "harness/on.rs"]
mod on;

use std::future::poll_fn;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use on::On;
use outbox_core::sql::{Migration, TableNames, mysql, pg, sqlite};
use outbox_core::{
    BeginKey, Begun, ClaimRequest, Enqueue, Error, ErrorKind, Fingerprint, IdempotencyKey,
    IdempotencyKeys, LockRequest, LockStatus, Locks, NewEvent, OutboxStore, Outcome, Settlement,
};
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, MySqlPool, PgPool, SqlitePool};
use outbox_sqlx::{MySqlStore, PgStore, SqliteStore};
use tempfile::TempDir;
use tests::{MySqlServer, PgServer};

type Outcomes = Result<(), Box<dyn std::error::Error>>;

fn odd_names() -> Result<TableNames, outbox_core::Error> {
    TableNames::new("Out box")?.schema("My-Schema")
}

async fn pg_pool(url: &str) -> Result<PgPool, sqlx::Error> {
    PgPoolOptions::new().max_connections(2).connect(url).await
}

/// Applies steps as other tools do: the text of each, by `psql`.
fn apply(url: &str, steps: &[Migration]) {
    let database = url.rsplit('/').next().unwrap_or_default();
    for step in steps {
        PgServer::shared().sql(database, &step.sql);
    }
}

/// The store does what it is for.
async fn works<S: OutboxStore + IdempotencyKeys + Locks>(store: &S) -> Outcomes {
    let claim = store
        .claim(&ClaimRequest::new(NonZeroU32::MIN, Duration::from_secs(60)))
        .await?;
    let settled: Vec<Settlement> = claim
        .events
        .iter()
        .map(|claimed| Settlement::new(claimed.lease, Outcome::Published))
        .collect();
    assert_eq!(settled.len(), 1, "the event is there");
    store.settle(&settled).await?;
    let request = BeginKey::new(
        IdempotencyKey::new("s", "k")?,
        Fingerprint::from_bytes([1; 32]),
    );
    assert_eq!(store.begin_key(&request).await?, Begun::Started);
    let lock = store.try_lock(&LockRequest::new("job")).await?;
    assert_eq!(lock, LockStatus::Acquired);
    Ok(())
}

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("https://ci.example/hooks")
}

#[tokio::test]
async fn postgres_takes_the_exported_text_by_psql() -> Outcomes {
    let url = PgServer::shared().create_database();
    apply(&url, &pg::migrations(&odd_names()?));
    let store = PgStore::new(pg_pool(&url).await?).tables(odd_names()?);
    store.check_schema().await?;
    store.migrate().await?;
    let mut conn = store.pool().acquire().await?;
    store.enqueue(&mut conn, event().key("k")).await?;
    works(&store).await
}

#[tokio::test]
async fn postgres_goes_on_from_an_older_schema() -> Outcomes {
    let url = PgServer::shared().create_database();
    apply(&url, &pg::migrations(&TableNames::default())[..1]);
    let store = PgStore::new(pg_pool(&url).await?);
    let old = store.check_schema().await.unwrap_err();
    assert_eq!(old.kind(), ErrorKind::Schema);
    assert!(old.to_string().contains("PgStore::migrate"), "{old}");
    let mut conn = store.pool().acquire().await?;
    store.enqueue(&mut conn, event()).await?;
    store.migrate().await?;
    store.check_schema().await?;
    works(&store).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_migrated_by_many_at_once() -> Outcomes {
    let url = PgServer::shared().create_database();
    let mut tasks = Vec::new();
    for _ in 0..12 {
        let store = PgStore::new(pg_pool(&url).await?).tables(odd_names()?);
        tasks.push(tokio::spawn(async move { store.migrate().await }));
    }
    for task in tasks {
        task.await??;
    }
    let store = PgStore::new(pg_pool(&url).await?).tables(odd_names()?);
    store.check_schema().await?;
    let mut conn = store.pool().acquire().await?;
    store.enqueue(&mut conn, event()).await?;
    works(&store).await
}

async fn apply_sqlite(pool: &SqlitePool, steps: &[Migration]) -> Result<(), sqlx::Error> {
    for step in steps {
        let mut tx = pool.begin().await?;
        sqlx::raw_sql(AssertSqlSafe(step.sql.as_str()))
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn sqlite_takes_the_exported_text() -> Outcomes {
    let folder = tempfile::tempdir()?;
    let names = TableNames::new("Out box")?;
    let store = SqliteStore::connect(folder.path().join("db")).await?;
    let store = store.tables(names.clone())?;
    apply_sqlite(store.pool(), &sqlite::migrations(&names)).await?;
    store.check_schema().await?;
    store.migrate().await?;
    let mut conn = store.pool().acquire().await?;
    store.enqueue(&mut conn, event().key("k")).await?;
    works(&store).await
}

#[tokio::test]
async fn sqlite_goes_on_from_an_older_schema() -> Outcomes {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::connect(folder.path().join("db")).await?;
    let steps = sqlite::migrations(&TableNames::default());
    apply_sqlite(store.pool(), &steps[..1]).await?;
    let old = store.check_schema().await.unwrap_err();
    assert_eq!(old.kind(), ErrorKind::Schema);
    let mut conn = store.pool().acquire().await?;
    store.enqueue(&mut conn, event()).await?;
    drop(conn);
    store.migrate().await?;
    store.check_schema().await?;
    works(&store).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_is_migrated_by_many_at_once() -> Outcomes {
    let folder = tempfile::tempdir()?;
    let path = Arc::new(folder.path().join("db"));
    // The first connection makes the file and its write-ahead log.
    let store = SqliteStore::connect(path.as_path()).await?;
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let store = SqliteStore::connect(path.as_path()).await?;
        tasks.push(tokio::spawn(async move { store.migrate().await }));
    }
    for task in tasks {
        task.await??;
    }
    store.check_schema().await?;
    let mut conn = store.pool().acquire().await?;
    store.enqueue(&mut conn, event()).await?;
    drop(conn);
    works(&store).await
}

#[tokio::test]
async fn mysql_goes_on_from_an_older_schema() -> Outcomes {
    let url = MySqlServer::shared().create_database();
    let store = MySqlStore::new(MySqlPool::connect(&url).await?);
    for step in &mysql::migrations(&TableNames::default())[..1] {
        sqlx::raw_sql(AssertSqlSafe(step.sql.as_str()))
            .execute(store.pool())
            .await?;
    }
    let old = store.check_schema().await.unwrap_err();
    assert_eq!(old.kind(), ErrorKind::Schema);
    let mut conn = store.pool().acquire().await?;
    store.enqueue(&mut conn, event()).await?;
    drop(conn);
    store.migrate().await?;
    store.check_schema().await?;
    works(&store).await
}

/// A call that is dropped at each of its await points in turn. What it did is unknown, and it may still
/// be at work.
mod cut_short {
    use super::*;

    /// Shorter than MySQL's stores wait for each other, and far longer than a migration takes.
    const DEADLINE: Duration = Duration::from_secs(30);

    trait Subject: On + OutboxStore + IdempotencyKeys + Locks {
        async fn make(&self) -> Result<(), Error>;
        async fn check(&self) -> Result<(), Error>;
    }

    macro_rules! subjects {
        ($($store:ty)*) => {$(
            impl Subject for $store {
                async fn make(&self) -> Result<(), Error> {
                    self.migrate().await
                }

                async fn check(&self) -> Result<(), Error> {
                    self.check_schema().await
                }
            }
        )*};
    }
    subjects! {
        PgStore MySqlStore SqliteStore
        outbox_diesel::PgStore outbox_diesel::MySqlStore outbox_diesel::SqliteStore
    }

    /// A producer on an empty database.
    trait Producer: On {
        /// Where the database is. The folder is for those that are files.
        fn database(folder: &TempDir) -> String;
        async fn put(&self) -> Outcomes;
    }

    macro_rules! producers {
        ($($store:ty, $database:expr;)*) => {$(
            impl Producer for $store {
                fn database(folder: &TempDir) -> String {
                    ($database)(folder)
                }

                async fn put(&self) -> Outcomes {
                    let mut conn = self.pool().acquire().await?;
                    self.enqueue(&mut conn, event().key("k")).await?;
                    Ok(())
                }
            }
        )*};
    }
    producers! {
        PgStore, |_| PgServer::shared().create_database();
        MySqlStore, |_| MySqlServer::shared().create_database();
        SqliteStore, |folder: &TempDir| folder.path().join("db").display().to_string();
    }

    /// Polls a migration so many times, and drops it; whether it came to its end.
    async fn cut(store: &impl Subject, polls: usize) -> Result<bool, Error> {
        let mut call = Box::pin(store.make());
        let mut left = polls;
        poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(Ok(false));
            }
            left -= 1;
            match call.as_mut().poll(cx) {
                Poll::Ready(done) => Poll::Ready(done.map(|()| true)),
                Poll::Pending if left == 0 => Poll::Ready(Ok(false)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    async fn leaves_it_to_the_next_one<S: Subject, P: Producer>() -> Outcomes {
        for polls in 0..200 {
            let folder = tempfile::tempdir()?;
            let url = P::database(&folder);
            let store = S::on(&url, 1).await;
            let ended = cut(&store, polls).await?;
            // Another process, then the pool whose call was dropped. Neither leaves a lock to the next.
            let other = S::on(&url, 1).await;
            for next in [&other, &store, &other] {
                let made = tokio::time::timeout(DEADLINE, next.make()).await;
                made.map_err(|_| format!("after {polls} polls something is locked"))??;
                next.check().await?;
            }
            P::on(&url, 1).await.put().await?;
            works(&store).await?;
            if ended {
                return Ok(());
            }
        }
        Err("the call does not come to its end".into())
    }

    macro_rules! tests {
        ($($name:ident: $store:ty, $producer:ty;)*) => {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> Outcomes {
                leaves_it_to_the_next_one::<$store, $producer>().await
            }
        )*};
    }
    tests! {
        leaves_it_to_the_next_one_on_postgres: PgStore, PgStore;
        leaves_it_to_the_next_one_on_mysql: MySqlStore, MySqlStore;
        leaves_it_to_the_next_one_on_sqlite: SqliteStore, SqliteStore;
        leaves_it_to_the_next_one_on_postgres_through_diesel: outbox_diesel::PgStore, PgStore;
        leaves_it_to_the_next_one_on_mysql_through_diesel: outbox_diesel::MySqlStore, MySqlStore;
        leaves_it_to_the_next_one_on_sqlite_through_diesel: outbox_diesel::SqliteStore, SqliteStore;
    }
}
