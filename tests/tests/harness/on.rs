//! Stores of both adapters on the database at a URL; for SQLite, at a path.

use diesel::SqliteConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection};
use outbox_sqlx::sqlx::mysql::MySqlPoolOptions;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::sqlite::SqlitePoolOptions;

/// A store that is opened by a URL.
pub(crate) trait On: Sized {
    /// A store with a pool of its own, of up to so many connections. It makes no tables.
    fn on(url: &str, connections: u32) -> impl Future<Output = Self> + Send;
}

impl On for outbox_sqlx::PgStore {
    async fn on(url: &str, connections: u32) -> Self {
        let pool = PgPoolOptions::new().max_connections(connections);
        Self::new(pool.connect(url).await.expect("connected"))
    }
}

impl On for outbox_sqlx::MySqlStore {
    async fn on(url: &str, connections: u32) -> Self {
        let pool = MySqlPoolOptions::new().max_connections(connections);
        Self::new(pool.connect(url).await.expect("connected"))
    }
}

impl On for outbox_sqlx::SqliteStore {
    async fn on(path: &str, connections: u32) -> Self {
        let pool = SqlitePoolOptions::new().max_connections(connections);
        let pool = pool.connect_with(Self::options(path)).await;
        Self::new(pool.expect("opened")).expect("default tables")
    }
}

/// A pool of diesel's. (What a connection must be able to, for pools, takes a page to say.)
macro_rules! pool {
    ($connection:ty, $url:expr, $connections:expr, $config:expr) => {{
        let manager = AsyncDieselConnectionManager::<$connection>::new_with_config($url, $config);
        let pool = Pool::builder(manager).max_size($connections as usize);
        pool.build().expect("a pool")
    }};
}

impl On for outbox_diesel::PgStore {
    async fn on(url: &str, connections: u32) -> Self {
        let config = ManagerConfig::default();
        Self::new(pool!(AsyncPgConnection, url, connections, config))
    }
}

impl On for outbox_diesel::MySqlStore {
    async fn on(url: &str, connections: u32) -> Self {
        let config = ManagerConfig::default();
        Self::new(pool!(AsyncMysqlConnection, url, connections, config))
    }
}

impl On for outbox_diesel::SqliteStore {
    async fn on(path: &str, connections: u32) -> Self {
        let mut config = ManagerConfig::default();
        config.custom_setup = Box::new(|path| Box::pin(Self::open(path.to_owned())));
        let pool = pool!(
            SyncConnectionWrapper<SqliteConnection>,
            path,
            connections,
            config
        );
        Self::new(pool).expect("default tables")
    }
}
