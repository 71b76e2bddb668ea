//! A private server, databases on it, and what the parts share.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use outbox_core::Retention;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, PgPool};
use tests::PgServer;

/// Where events of a fill go.
pub(crate) const DESTINATION: &str = "https://ci.example/hooks";

/// A database with the store's tables.
pub(crate) struct Bench {
    pub(crate) url: String,
    pub(crate) pool: PgPool,
    pub(crate) diesel: Pool<AsyncPgConnection>,
    server: Arc<PgServer>,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        let server = PgServer::start_with(&[
            "fsync=on",
            "synchronous_commit=on",
            "full_page_writes=on",
            "shared_buffers=1GB",
            "max_wal_size=8GB",
        ]);
        Self::on(Arc::new(server)).await
    }

    /// Another database on the same server, with a horizon of its own.
    pub(crate) async fn another(&self) -> Self {
        Self::on(Arc::clone(&self.server)).await
    }

    async fn on(server: Arc<PgServer>) -> Self {
        let url = server.create_database();
        let options = PgPoolOptions::new().max_connections(8);
        let bench = Self {
            pool: options.connect(&url).await.expect("connected"),
            diesel: diesel_pool(&url),
            url,
            server,
        };
        bench.sqlx().migrate().await.expect("migrated");
        bench
    }

    /// The store on sqlx, which deletes at once.
    pub(crate) fn sqlx(&self) -> outbox_sqlx::PgStore {
        self.keeping().retention(Retention::DeleteAtOnce)
    }

    /// The store on sqlx, which keeps published events.
    pub(crate) fn keeping(&self) -> outbox_sqlx::PgStore {
        outbox_sqlx::PgStore::new(self.pool.clone()).retention(Retention::Keep)
    }

    /// The store on diesel, which deletes at once.
    pub(crate) fn diesel(&self) -> outbox_diesel::PgStore {
        outbox_diesel::PgStore::new(self.diesel.clone()).retention(Retention::DeleteAtOnce)
    }

    pub(crate) async fn execute(&self, text: &str) {
        sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
            .execute(&self.pool)
            .await
            .expect("executed");
    }

    /// The one number that a query returns.
    pub(crate) async fn number(&self, text: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(text.to_owned()))
            .persistent(false)
            .fetch_one(&self.pool)
            .await
            .expect("a number")
    }

    /// Empties the tables.
    pub(crate) async fn clear(&self) {
        self.execute(
            "TRUNCATE outbox_events, outbox_published, outbox_dead, outbox_destinations, outbox_runs
             RESTART IDENTITY",
        )
        .await;
    }

    /// Makes a measurement begin with tables that are tidy and on disk.
    pub(crate) async fn settle_down(&self) {
        self.execute("VACUUM ANALYZE outbox_events").await;
        self.execute("CHECKPOINT").await;
    }

    /// Puts a backlog into empty tables.
    pub(crate) async fn fill(&self, fill: &Fill<'_>) {
        self.clear().await;
        self.add(fill).await;
        self.settle_down().await;
    }

    /// Adds to the backlog, as one transaction.
    pub(crate) async fn add(&self, fill: &Fill<'_>) {
        let Fill {
            events,
            destination,
            key,
            bytes,
            headers,
        } = fill;
        let headers = match headers {
            0 => "NULL".to_owned(),
            bytes => format!("'{{\"h\":\"' || repeat('v', {bytes}) || '\"}}'"),
        };
        let (shape, key) = key.map_or((0, "NULL"), |key| (2, key));
        self.execute(&format!(
            "INSERT INTO outbox_events (id, event_type, destination, key, payload, headers, shape)
             SELECT {IN_ORDER}, 'RepositoryPushed', '{destination}', {key},
                 decode(repeat('ab', {bytes}), 'hex'), {headers}, {shape}
             FROM generate_series(1, {events}) n"
        ))
        .await;
    }
}

/// An id that grows with time, as UUIDv7 does, and is quick to make.
const IN_ORDER: &str =
    "(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 13))::uuid";

/// A backlog.
#[derive(Clone, Copy)]
pub(crate) struct Fill<'a> {
    pub(crate) events: u32,
    pub(crate) destination: &'a str,
    /// The key as SQL, where there is one; `n` is the number of the row.
    pub(crate) key: Option<&'a str>,
    /// The size of a payload.
    pub(crate) bytes: u32,
    /// The size of a header; none where it is 0.
    pub(crate) headers: u32,
}

impl Fill<'_> {
    /// So many events of 400 bytes without a key.
    pub(crate) const fn of(events: u32) -> Self {
        Self {
            events,
            destination: DESTINATION,
            key: None,
            bytes: 400,
            headers: 0,
        }
    }
}

fn diesel_pool(url: &str) -> Pool<AsyncPgConnection> {
    let mut config = ManagerConfig::default();
    config.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url, config);
    let pool = Pool::builder(manager).max_size(8);
    pool.build().expect("a pool")
}

/// Thousand events a second.
pub(crate) fn rate(events: u32, took: Duration) -> f64 {
    f64::from(events) / took.as_secs_f64() / 1e3
}

pub(crate) fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
