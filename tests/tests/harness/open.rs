//! Stores of outbox-sqlx with their tables, each on a database of its own.

use outbox_sqlx::sqlx::pool::PoolConnection;
use outbox_sqlx::sqlx::{Database, MySql, MySqlPool, PgPool, Postgres, Sqlite};
use outbox_sqlx::{MySqlStore, PgStore, SqliteStore};
use tempfile::TempDir;
use tests::{MySqlServer, PgServer};

/// A store that can be opened on a database of its own.
pub(crate) trait Open: Sized {
    type Database: Database;
    /// Where the database is: a URL, or a folder, which is deleted with this.
    type Place;

    /// The store, a connection of its pool, and where the database is.
    fn open() -> impl Future<Output = (Self, PoolConnection<Self::Database>, Self::Place)> + Send;
}

impl Open for PgStore {
    type Database = Postgres;
    type Place = String;

    async fn open() -> (Self, PoolConnection<Postgres>, String) {
        let url = PgServer::shared().create_database();
        let store = Self::new(PgPool::connect(&url).await.expect("connected"));
        store.migrate().await.expect("migrated");
        let conn = store.pool().acquire().await.expect("a connection");
        (store, conn, url)
    }
}

impl Open for MySqlStore {
    type Database = MySql;
    type Place = String;

    async fn open() -> (Self, PoolConnection<MySql>, String) {
        let url = MySqlServer::shared().create_database();
        let store = Self::new(MySqlPool::connect(&url).await.expect("connected"));
        store.migrate().await.expect("migrated");
        let conn = store.pool().acquire().await.expect("a connection");
        (store, conn, url)
    }
}

impl Open for SqliteStore {
    type Database = Sqlite;
    type Place = TempDir;

    async fn open() -> (Self, PoolConnection<Sqlite>, TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Self::connect(folder.path().join("db")).await;
        let store = store.expect("opened");
        store.migrate().await.expect("migrated");
        let conn = store.pool().acquire().await.expect("a connection");
        (store, conn, folder)
    }
}
