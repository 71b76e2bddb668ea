//! Producers on SQLite beside another writer: a transaction that has read is refused at once, whatever
//! the busy time-out; one that began as a writer waits.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

use std::path::Path;

use diesel::SqliteConnection;
use diesel::connection::{AnsiTransactionManager, TransactionManager};
use diesel_async::SimpleAsyncConnection;
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use outbox_core::{Enqueue, Error, ErrorKind, Maintenance, NewEvent};
use outbox_sqlx::SqliteStore;
use outbox_sqlx::sqlx::{self, Sqlite, Transaction};

fn event() -> NewEvent {
    NewEvent::bytes("T", "x").to("somewhere")
}

async fn read(tx: &mut Transaction<'_, Sqlite>) {
    let read = sqlx::query("SELECT count(*) FROM outbox_events");
    read.fetch_one(&mut **tx).await.unwrap();
}

#[track_caller]
fn names_the_remedy(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
    assert!(error.is_retryable());
    assert!(error.to_string().contains("BEGIN IMMEDIATE"), "{error}");
}

async fn pending(store: &SqliteStore) -> u64 {
    store.stats(1_000).await.unwrap().pending.value
}

#[tokio::test]
async fn that_have_read_are_refused_beside_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let mut writer = store.begin_immediate().await.unwrap();
    store.enqueue(&mut writer, event()).await.unwrap();
    let mut reader = store.pool().begin().await.unwrap();
    read(&mut reader).await;
    let refused = store.enqueue(&mut reader, event()).await;
    names_the_remedy(&refused.unwrap_err());
    reader.rollback().await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(pending(&store).await, 1);
}

#[tokio::test]
async fn that_have_read_are_refused_after_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let mut reader = store.pool().begin().await.unwrap();
    read(&mut reader).await;
    let mut writer = store.begin_immediate().await.unwrap();
    store.enqueue(&mut writer, event()).await.unwrap();
    writer.commit().await.unwrap();
    let refused = store.enqueue(&mut reader, event()).await;
    names_the_remedy(&refused.unwrap_err());
    reader.rollback().await.unwrap();
    assert_eq!(pending(&store).await, 1);
}

#[tokio::test]
async fn that_began_as_writers_wait() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let mut writer = store.begin_immediate().await.unwrap();
    let next = tokio::spawn({
        let store = store.clone();
        async move {
            let mut tx = store.begin_immediate().await?;
            read(&mut tx).await;
            store.enqueue(&mut tx, event()).await?;
            tx.commit().await.unwrap();
            Ok::<(), Error>(())
        }
    });
    for _ in 0..100 {
        store.enqueue(&mut writer, event()).await.unwrap();
    }
    assert!(!next.is_finished(), "it did not wait");
    writer.commit().await.unwrap();
    next.await.unwrap().unwrap();
    assert_eq!(pending(&store).await, 101);
}

async fn store(folder: &Path) -> SqliteStore {
    let store = SqliteStore::connect(folder.join("db")).await.unwrap();
    store.migrate().await.unwrap();
    store
}

type Connection = SyncConnectionWrapper<SqliteConnection>;

async fn begin(conn: &mut Connection, how: &'static str) {
    let begun =
        conn.spawn_blocking(move |conn| AnsiTransactionManager::begin_transaction_sql(conn, how));
    begun.await.unwrap();
}

async fn commit(conn: &mut Connection) {
    let committed = conn.spawn_blocking(AnsiTransactionManager::commit_transaction);
    committed.await.unwrap();
}

async fn roll_back(conn: &mut Connection) {
    let rolled_back = conn.spawn_blocking(AnsiTransactionManager::rollback_transaction);
    rolled_back.await.unwrap();
}

#[tokio::test]
async fn of_diesel_are_refused_and_wait_alike() {
    let folder = tempfile::tempdir().unwrap();
    let by_sqlx = store(folder.path()).await;
    let path = folder.path().join("db").display().to_string();
    let open = || outbox_diesel::SqliteStore::open(path.clone());
    let (mut writer, mut other) = (open().await.unwrap(), open().await.unwrap());
    let by_diesel = outbox_diesel::SqliteStore::enqueue_only().unwrap();

    begin(&mut writer, "BEGIN IMMEDIATE").await;
    begin(&mut other, "BEGIN").await;
    let read = "SELECT count(*) FROM outbox_events";
    other.batch_execute(read).await.unwrap();
    let refused = by_diesel.enqueue(&mut other, event()).await;
    names_the_remedy(&refused.unwrap_err());
    roll_back(&mut other).await;

    let next = tokio::spawn({
        let by_diesel = by_diesel.clone();
        async move {
            begin(&mut other, "BEGIN IMMEDIATE").await;
            other.batch_execute(read).await.unwrap();
            by_diesel.enqueue(&mut other, event()).await?;
            commit(&mut other).await;
            Ok::<(), Error>(())
        }
    });
    for _ in 0..100 {
        by_diesel.enqueue(&mut writer, event()).await.unwrap();
    }
    assert!(!next.is_finished(), "it did not wait");
    commit(&mut writer).await;
    next.await.unwrap().unwrap();
    assert_eq!(pending(&by_sqlx).await, 101);
}
