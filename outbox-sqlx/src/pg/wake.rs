//! Waking relays by notifications.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use outbox_core::sql::pg::Statements;
use outbox_core::sql::{Listen, Listener, Patience, Sql, TableNames, listen};
use outbox_core::{Error, Retention, Timer, Wake, async_trait};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor, PgPool};

use super::PgStore;
use super::error::classify;

impl PgStore {
    /// A source of wake-ups for relays: this database's notifications, on a connection of its own
    /// with the pool's options. Each relay that runs with it has one such connection.
    ///
    /// Something must notify: producers by [`notify`](Self::notify) after their commit, or the
    /// trigger ([`enable_notify_trigger`](Self::enable_notify_trigger)).
    #[must_use]
    pub fn wake(&self, timer: impl Timer + 'static) -> PgWake {
        PgWake {
            driver: Driver {
                source: Source::Pool(self.pool.clone()),
                listen: Arc::clone(&self.sql.notify.listen),
            },
            timer: Arc::new(timer),
            patience: Patience::default(),
        }
    }
}

/// Wakes relays by PostgreSQL's notifications ([`PgStore::wake`]).
///
/// Its connection is outside every pool. It is opened again, at growing intervals, when it is lost
/// or gives no answer to a probe, and the relay then looks once for what it may have missed. A relay
/// polls all the same.
///
/// It must be dropped, with the relay that it is given to, inside the runtime: sqlx closes the
/// connection in a task.
#[derive(Clone)]
pub struct PgWake {
    driver: Driver,
    timer: Arc<dyn Timer>,
    patience: Patience,
}

impl PgWake {
    /// On a connection with these options, for the tables of these names: where the pool goes
    /// through a pooler in transaction mode, which hands on no notifications.
    pub fn new(options: PgConnectOptions, names: &TableNames, timer: impl Timer + 'static) -> Self {
        let statements = Statements::new(names, Retention::default());
        Self {
            driver: Driver {
                source: Source::Options(Box::new(options)),
                listen: statements.notify.listen,
            },
            timer: Arc::new(timer),
            patience: Patience::default(),
        }
    }

    /// After so long without a notification the connection is probed with one statement.
    /// Default: 30 s.
    #[must_use]
    pub const fn probe_after(mut self, quiet: Duration) -> Self {
        self.patience.probe_after = quiet;
        self
    }

    /// A connection that has not answered a probe, or has not been opened, within this is given up.
    /// Default: 10 s.
    #[must_use]
    pub const fn answer_within(mut self, limit: Duration) -> Self {
        self.patience.answer_within = limit;
        self
    }
}

impl Wake for PgWake {
    fn wakes(&self) -> BoxStream<'static, ()> {
        let driver = Arc::new(self.driver.clone());
        listen(driver, Arc::clone(&self.timer), self.patience)
    }
}

impl fmt::Debug for PgWake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgWake")
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Driver {
    source: Source,
    listen: Sql,
}

#[derive(Clone)]
enum Source {
    Options(Box<PgConnectOptions>),
    /// For its options alone, which the application may change while it runs.
    Pool(PgPool),
}

#[async_trait]
impl Listen for Driver {
    async fn open(&self) -> Result<Box<dyn Listener>, Error> {
        let options = match &self.source {
            Source::Options(options) => options.as_ref().clone(),
            Source::Pool(pool) => pool.connect_options().as_ref().clone(),
        };
        self.connect(options)
            .await
            .map(|listener| Box::new(Session(listener)) as Box<dyn Listener>)
            .map_err(|error| classify("listen", error))
    }
}

impl Driver {
    /// sqlx's listener wants a pool. Each connection has a new one: in an old one, a connection that
    /// is given up but not closed yet would hold the only place.
    async fn connect(&self, options: PgConnectOptions) -> Result<PgListener, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(options);
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.ignore_pool_close_event(true);
        let sql = sqlx::raw_sql(AssertSqlSafe(Arc::clone(&self.listen)));
        listener.execute(sql).await?;
        Ok(listener)
    }
}

struct Session(PgListener);

#[async_trait]
impl Listener for Session {
    /// Since sqlx 0.7 a dropped call loses no part of a message.
    async fn notified(&mut self) -> Result<(), Error> {
        match self.0.try_recv().await {
            Ok(Some(_)) => Ok(()),
            // It would connect anew by itself, and not say so.
            Ok(None) => Err(classify("listen", sqlx::Error::WorkerCrashed)),
            Err(error) => Err(classify("listen", error)),
        }
    }

    async fn probe(&mut self) -> Result<(), Error> {
        let done = self.0.execute(sqlx::raw_sql("SELECT 1")).await;
        done.map(drop).map_err(|error| classify("listen", error))
    }
}
