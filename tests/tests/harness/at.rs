//! Stores of both adapters, with their tables, on the database at a URL.

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection};
use outbox_core::Retention;
use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;

/// A store that is opened by a URL.
pub(crate) trait At: Sized {
    /// A store with a pool of its own, of up to so many connections.
    fn at(url: &str, connections: u32, retention: Retention) -> impl Future<Output = Self> + Send;
}

impl At for outbox_sqlx::PgStore {
    async fn at(url: &str, connections: u32, retention: Retention) -> Self {
        let pool = PgPoolOptions::new().max_connections(connections);
        let pool = pool.connect(url).await.expect("connected");
        let store = Self::new(pool).retention(retention);
        store.migrate().await.expect("migrated");
        store
    }
}

impl At for outbox_sqlx::MySqlStore {
    async fn at(url: &str, connections: u32, retention: Retention) -> Self {
        let pool = MySqlPoolOptions::new().max_connections(connections);
        let pool = pool.connect(url).await.expect("connected");
        let store = Self::new(pool).retention(retention);
        store.migrate().await.expect("migrated");
        store
    }
}

impl At for outbox_diesel::PgStore {
    async fn at(url: &str, connections: u32, retention: Retention) -> Self {
        let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
        let pool = Pool::builder(manager).max_size(connections as usize);
        let store = Self::new(pool.build().expect("a pool")).retention(retention);
        store.migrate().await.expect("migrated");
        store
    }
}

impl At for outbox_diesel::MySqlStore {
    async fn at(url: &str, connections: u32, retention: Retention) -> Self {
        let manager = AsyncDieselConnectionManager::<AsyncMysqlConnection>::new(url);
        let pool = Pool::builder(manager).max_size(connections as usize);
        let store = Self::new(pool.build().expect("a pool")).retention(retention);
        store.migrate().await.expect("migrated");
        store
    }
}
