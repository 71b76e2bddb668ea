//! What the cases need of an adapter.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use futures::stream::BoxStream;
use outbox_core::sql::TableNames;
use outbox_core::{Enqueue, Error, NewEvent, OutboxStore, TokioTimer, Wake, async_trait};
use outbox_diesel::tokio_postgres::Config;
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::PgPool;
use outbox_sqlx::sqlx::postgres::PgPoolOptions;
use tests::PgServer;

/// An adapter's store.
#[async_trait]
pub(crate) trait Subject: Clone + Send + Sync + 'static {
    async fn open(url: &str, names: TableNames) -> Self;
    fn store(&self) -> Arc<dyn OutboxStore>;
    async fn notify(&self) -> Result<(), Error>;
    async fn enable_trigger(&self) -> Result<(), Error>;
    async fn disable_trigger(&self) -> Result<(), Error>;
    fn wake(&self, patience: Option<(Duration, Duration)>) -> Arc<dyn Wake>;
}

pub(crate) fn pool(url: &str) -> PgPool {
    let options = PgPoolOptions::new().max_connections(4);
    options.connect_lazy(url).expect("a URL")
}

#[async_trait]
impl Subject for PgStore {
    async fn open(url: &str, names: TableNames) -> Self {
        Self::new(pool(url)).tables(names)
    }

    fn store(&self) -> Arc<dyn OutboxStore> {
        Arc::new(self.clone())
    }

    async fn notify(&self) -> Result<(), Error> {
        Self::notify(self).await
    }

    async fn enable_trigger(&self) -> Result<(), Error> {
        self.enable_notify_trigger().await
    }

    async fn disable_trigger(&self) -> Result<(), Error> {
        self.disable_notify_trigger().await
    }

    fn wake(&self, patience: Option<(Duration, Duration)>) -> Arc<dyn Wake> {
        let mut wake = Self::wake(self, TokioTimer);
        if let Some((quiet, limit)) = patience {
            wake = wake.probe_after(quiet).answer_within(limit);
        }
        Arc::new(wake)
    }
}

/// A store, and where it is: diesel's listener connects by itself.
#[derive(Clone)]
pub(crate) struct Diesel {
    store: outbox_diesel::PgStore,
    config: Config,
    names: TableNames,
}

#[async_trait]
impl Subject for Diesel {
    async fn open(url: &str, names: TableNames) -> Self {
        let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
        let pool = Pool::builder(manager).max_size(4).build().expect("a pool");
        Self {
            store: outbox_diesel::PgStore::new(pool).tables(names.clone()),
            config: url.parse().expect("a URL"),
            names,
        }
    }

    fn store(&self) -> Arc<dyn OutboxStore> {
        Arc::new(self.store.clone())
    }

    async fn notify(&self) -> Result<(), Error> {
        self.store.notify().await
    }

    async fn enable_trigger(&self) -> Result<(), Error> {
        self.store.enable_notify_trigger().await
    }

    async fn disable_trigger(&self) -> Result<(), Error> {
        self.store.disable_notify_trigger().await
    }

    fn wake(&self, patience: Option<(Duration, Duration)>) -> Arc<dyn Wake> {
        let mut wake = outbox_diesel::PgWake::new(self.config.clone(), &self.names, TokioTimer);
        if let Some((quiet, limit)) = patience {
            wake = wake.probe_after(quiet).answer_within(limit);
        }
        Arc::new(wake)
    }
}

/// A database with a producer of its own, and the adapter's store.
pub(crate) struct Fixture<S> {
    pub(crate) url: String,
    pub(crate) producer: PgStore,
    pub(crate) subject: S,
}

impl<S: Subject> Fixture<S> {
    pub(crate) async fn new(server: &PgServer) -> Self {
        Self::with_names(server, TableNames::default()).await
    }

    pub(crate) async fn with_names(server: &PgServer, names: TableNames) -> Self {
        let url = server.create_database();
        let producer = PgStore::new(pool(&url)).tables(names.clone());
        producer.migrate().await.expect("migrated");
        let subject = S::open(&url, names).await;
        Self {
            url,
            producer,
            subject,
        }
    }

    /// Commits a change with one event.
    pub(crate) async fn commit(&self) -> Result<(), Box<dyn std::error::Error>> {
        let mut tx = self.producer.pool().begin().await?;
        let event = NewEvent::bytes("Noted", "x").to("somewhere");
        self.producer.enqueue(&mut tx, event).await?;
        Ok(tx.commit().await?)
    }

    /// A listener that listens.
    pub(crate) async fn listening(
        &self,
        patience: Option<(Duration, Duration)>,
    ) -> BoxStream<'static, ()> {
        let mut wakes = self.subject.wake(patience).wakes();
        crate::cases::item(&mut wakes).await;
        wakes
    }

    /// Does `what` (an expression with `pid`) to the listener's backend.
    pub(crate) async fn listeners(&self, what: &str) -> Vec<i32> {
        use outbox_sqlx::sqlx::{AssertSqlSafe, query_scalar};
        let text = format!(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
             AND pid <> pg_backend_pid() AND query ~ '^(SET tcp|SELECT 1)' AND {what}"
        );
        query_scalar(AssertSqlSafe(text))
            .fetch_all(self.producer.pool())
            .await
            .expect("listed")
    }
}
