//! The host's database: `repositories` and the outbox, in SQLite or PostgreSQL.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outbox_core::{DeadLetters, EventId, Maintenance, OutboxStore};
use outbox_sqlx::{PgStore, SqliteStore};
use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
};

use crate::args::DatabaseUrl;
use crate::history::Push;
use crate::pushes::{AnyError, Repositories, accept_push};

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS repositories (
    id BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    last_commit_sha TEXT NOT NULL,
    pushes BIGINT NOT NULL,
    updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)";
const CREATE: &str = "INSERT INTO repositories (id, name, last_commit_sha, pushes)
    VALUES ($1, $2, $3, 0)
    ON CONFLICT (id) DO UPDATE
    SET name = excluded.name, last_commit_sha = excluded.last_commit_sha, pushes = 0";
const UPDATE: &str = "UPDATE repositories
    SET last_commit_sha = $1, pushes = pushes + 1, updated_at = CURRENT_TIMESTAMP
    WHERE id = $2";
const ACCEPTED: &str = "SELECT CAST(COALESCE(SUM(pushes), 0) AS BIGINT)
    FROM repositories
    WHERE id < $1";

/// A connected database with its outbox.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    Sqlite(SqlitePool, SqliteStore),
    Postgres(PgPool, PgStore),
}

/// What a relay and an operator need.
pub(crate) trait Store: OutboxStore + DeadLetters + Maintenance {}

impl<S: OutboxStore + DeadLetters + Maintenance> Store for S {}

impl Database {
    /// Connects and migrates. Without a URL: a file in `folder`.
    pub(crate) async fn open(url: Option<&DatabaseUrl>, folder: &Path) -> Result<Self, AnyError> {
        match url {
            Some(DatabaseUrl::Postgres(url)) => {
                // A pool tries until it times out; a single connection says what is wrong.
                PgConnection::connect(url).await?.close().await?;
                let options = PgPoolOptions::new().max_connections(16);
                let pool = options.connect(url).await?;
                let store = PgStore::new(pool.clone());
                store.migrate().await?;
                sqlx::query(SCHEMA).execute(&pool).await?;
                Ok(Self::Postgres(pool, store))
            }
            Some(DatabaseUrl::Sqlite(url)) => {
                let options = SqliteConnectOptions::from_str(url)?
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal);
                Self::open_sqlite(options).await
            }
            None => Self::open_sqlite(SqliteStore::options(folder.join("quickstart.db"))).await,
        }
    }

    async fn open_sqlite(options: SqliteConnectOptions) -> Result<Self, AnyError> {
        let pool = SqlitePoolOptions::new()
            .max_connections(8)
            .connect_with(options)
            .await?;
        let store = SqliteStore::new(pool.clone())?;
        store.migrate().await?;
        sqlx::query(SCHEMA).execute(&pool).await?;
        Ok(Self::Sqlite(pool, store))
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(..) => "SQLite",
            Self::Postgres(..) => "PostgreSQL",
        }
    }

    /// How long claimed events are a relay's: what a killed one held is delivered again after this.
    /// On SQLite, longer than three of its busy time-outs.
    pub(crate) const fn lease(&self) -> Duration {
        Duration::from_secs(match self {
            Self::Sqlite(..) => 16,
            Self::Postgres(..) => 5,
        })
    }

    /// The outbox, for the relay and for operators.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(_, store) => Arc::new(store.clone()),
            Self::Postgres(_, store) => Arc::new(store.clone()),
        }
    }

    /// Makes the repository that `first` is pushed to.
    pub(crate) async fn create_repository(&self, first: &Push) -> Result<(), AnyError> {
        match self {
            Self::Sqlite(pool, _) => {
                let query = sqlx::query(CREATE).bind(first.repo_id);
                query
                    .bind(&first.repository)
                    .bind(&first.before)
                    .execute(pool)
                    .await?;
            }
            Self::Postgres(pool, _) => {
                let query = sqlx::query(CREATE).bind(first.repo_id);
                query
                    .bind(&first.repository)
                    .bind(&first.before)
                    .execute(pool)
                    .await?;
            }
        }
        Ok(())
    }

    /// Accepts a push in one transaction.
    pub(crate) async fn accept(
        &self,
        push: &Push,
        hooks: &[&str],
    ) -> Result<Vec<EventId>, AnyError> {
        let ids;
        match self {
            Self::Sqlite(_, store) => {
                let mut tx = store.begin_immediate().await?;
                ids = accept_push::<SqliteConnection>(&Sql, store, &mut tx, push, hooks).await?;
                tx.commit().await?;
            }
            Self::Postgres(pool, store) => {
                let mut tx = pool.begin().await?;
                ids = accept_push::<PgConnection>(&Sql, store, &mut tx, push, hooks).await?;
                tx.commit().await?;
            }
        }
        Ok(ids)
    }

    /// How many pushes the first `forks` repositories took.
    pub(crate) async fn accepted(&self, forks: i64) -> Result<i64, AnyError> {
        Ok(match self {
            Self::Sqlite(pool, _) => {
                let query = sqlx::query_scalar(ACCEPTED).bind(forks);
                query.fetch_one(pool).await?
            }
            Self::Postgres(pool, _) => {
                let query = sqlx::query_scalar(ACCEPTED).bind(forks);
                query.fetch_one(pool).await?
            }
        })
    }

    /// Closes the connections, after everything that uses them.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool, _) => pool.close().await,
            Self::Postgres(pool, _) => pool.close().await,
        }
    }
}

/// `repositories` through an sqlx connection.
struct Sql;

#[async_trait]
impl Repositories<SqliteConnection> for Sql {
    async fn update(&self, conn: &mut SqliteConnection, push: &Push) -> Result<(), AnyError> {
        let query = sqlx::query(UPDATE).bind(&push.after).bind(push.repo_id);
        updated(query.execute(conn).await?.rows_affected(), push)
    }
}

#[async_trait]
impl Repositories<PgConnection> for Sql {
    async fn update(&self, conn: &mut PgConnection, push: &Push) -> Result<(), AnyError> {
        let query = sqlx::query(UPDATE).bind(&push.after).bind(push.repo_id);
        updated(query.execute(conn).await?.rows_affected(), push)
    }
}

fn updated(rows: u64, push: &Push) -> Result<(), AnyError> {
    match rows {
        1 => Ok(()),
        _ => Err(format!("there is no repository {}", push.repository).into()),
    }
}
