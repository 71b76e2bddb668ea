//! PostgreSQL.

use diesel_async::AsyncPgConnection;
use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use diesel_async::pooled_connection::{self, AsyncDieselConnectionManager, ManagerConfig};
use outbox_core::{Enqueued, Error, NewEvent};
use outbox_diesel::{Connections, PgStore};
use tests::PgServer;

use crate::cases::{Server, cases};

struct Pg;

impl Server for Pg {
    type Async = AsyncPgConnection;
    /// One that needs no libpq.
    type Plain = AsyncConnectionWrapper<AsyncPgConnection>;
    type Store = PgStore;

    const EXPIRE: &'static str =
        "UPDATE outbox_events SET lease_until = now() - interval '1 second'";
    const NOWHERE: &'static str = "postgres://nobody@127.0.0.1:1/none";
    const MIGRATE: &'static str = "PgStore::migrate";

    fn create_database() -> String {
        PgServer::shared().create_database()
    }

    fn end_connections(url: &str) {
        let (_, database) = url.rsplit_once('/').unwrap();
        PgServer::shared().sql(
            database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
    }

    fn store(pool: impl Connections<AsyncPgConnection>) -> PgStore {
        PgStore::new(pool)
    }

    fn deadpool(url: &str, size: usize, careful: bool) -> PgStore {
        let mut config = ManagerConfig::default();
        if !careful {
            config.recycling_method = pooled_connection::RecyclingMethod::Fast;
        }
        let manager = AsyncDieselConnectionManager::new_with_config(url, config);
        let pool = pooled_connection::deadpool::Pool::builder(manager).max_size(size);
        PgStore::new(pool.build().unwrap())
    }

    async fn bb8(url: &str) -> PgStore {
        let pool = pooled_connection::bb8::Pool::builder().max_size(1);
        let pool = pool.build(AsyncDieselConnectionManager::new(url)).await;
        PgStore::new(pool.unwrap())
    }

    fn enqueue_only() -> PgStore {
        PgStore::enqueue_only()
    }

    async fn migrate(store: &PgStore) -> Result<(), Error> {
        store.migrate().await
    }

    async fn check_schema(store: &PgStore) -> Result<(), Error> {
        store.check_schema().await
    }

    fn enqueue_sync(
        store: &PgStore,
        conn: &mut Self::Plain,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error> {
        store.enqueue_all_sync(conn, events)
    }
}

cases!(Pg);
