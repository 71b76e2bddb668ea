//! A replica, say.

use diesel_async::{AsyncConnection, AsyncMysqlConnection, AsyncPgConnection};
use outbox_core::{BlockedKeyPage, DestinationPage, Destinations, Page};
use outbox_sqlx::sqlx::{MySqlConnection, PgConnection};

use super::*;
use crate::on::On;

/// Lists and counts are answered; what writes is unavailable, so that a relay tries again.
async fn is_read<C, S>(store: &S, conn: &mut C)
where
    S: Enqueue<C> + OutboxStore + DeadLetters + Destinations + Maintenance,
{
    assert_eq!(store.stats(10).await.unwrap().pending.value, 1);
    let page = Page::default();
    let letters = store.list(&DeadLetterFilter::all(), &page).await.unwrap();
    assert_eq!(letters, []);
    assert_eq!(store.get(1).await.unwrap(), None);
    let keys = store
        .blocked_keys(&BlockedKeyPage::default())
        .await
        .unwrap();
    assert_eq!(keys, []);
    let known = store.destinations(&DestinationPage::default()).await;
    assert_eq!(known.unwrap(), []);

    let claim = store.claim(&request()).await.map(drop);
    let stored = store.enqueue(conn, event()).await.map(drop);
    let keyed = store.enqueue(conn, event().dedup_key("k")).await.map(drop);
    for refused in [claim, stored, keyed] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    }
}

/// The URL of a database with one event, where transactions only read.
async fn on_postgres() -> String {
    let (store, mut conn, url) = PgStore::open().await;
    let (_, database) = url.rsplit_once('/').unwrap();
    store.enqueue(&mut *conn, event()).await.unwrap();
    let set = format!("ALTER DATABASE {database} SET default_transaction_read_only = on");
    run::<sqlx::Postgres>(&url, &[&set]).await;
    url
}

/// The same for a user who only reads there; and the server, to be kept.
async fn on_mysql() -> (String, MySqlServer) {
    let server = MySqlServer::start();
    let url = server.create_database();
    let store = MySqlStore::on(&url, 1).await;
    store.migrate().await.unwrap();
    let mut conn = store.pool().acquire().await.unwrap();
    store.enqueue(&mut *conn, event()).await.unwrap();
    server.sql(
        "mysql",
        "CREATE USER reader@'%' IDENTIFIED BY ''; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO reader@'%'; SET GLOBAL read_only = ON",
    );
    let (_, address) = url.split_once('@').unwrap();
    (format!("mysql://reader@{address}"), server)
}

/// A file with one event, in a folder to be kept.
async fn on_sqlite() -> (String, tempfile::TempDir) {
    let (store, mut conn, folder) = SqliteStore::open().await;
    store.enqueue(&mut *conn, event()).await.unwrap();
    (folder.path().join("db").display().to_string(), folder)
}

#[tokio::test]
async fn serves_lists_and_counts_on_postgres() {
    let url = on_postgres().await;
    let mut conn = PgConnection::connect(&url).await.unwrap();
    is_read(&PgStore::on(&url, 1).await, &mut conn).await;
}

#[tokio::test]
async fn serves_lists_and_counts_on_postgres_through_diesel() {
    let url = on_postgres().await;
    let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
    is_read(&outbox_diesel::PgStore::on(&url, 1).await, &mut conn).await;
}

#[tokio::test]
async fn serves_lists_and_counts_on_mysql() {
    let (url, _server) = on_mysql().await;
    let mut conn = MySqlConnection::connect(&url).await.unwrap();
    is_read(&MySqlStore::on(&url, 1).await, &mut conn).await;
}

#[tokio::test]
async fn serves_lists_and_counts_on_mysql_through_diesel() {
    let (url, _server) = on_mysql().await;
    let mut conn = AsyncMysqlConnection::establish(&url).await.unwrap();
    is_read(&outbox_diesel::MySqlStore::on(&url, 1).await, &mut conn).await;
}

#[tokio::test]
async fn serves_lists_and_counts_on_sqlite() {
    let (path, _folder) = on_sqlite().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .read_only(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let store = SqliteStore::new(pool).unwrap();
    let mut conn = store.pool().acquire().await.unwrap();
    is_read::<sqlx::SqliteConnection, _>(&store, &mut conn).await;
}

#[tokio::test]
async fn serves_lists_and_counts_on_sqlite_through_diesel() {
    let (path, _folder) = on_sqlite().await;
    let uri = format!("file:{path}?mode=ro");
    let mut conn = outbox_diesel::SqliteStore::open(uri.clone()).await.unwrap();
    is_read(&outbox_diesel::SqliteStore::on(&uri, 1).await, &mut conn).await;
}
