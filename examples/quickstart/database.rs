//! The host's database: `repositories` and the outbox, in SQLite or PostgreSQL.

use std::collections::HashSet;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outbox_core::{DeadLetters, EventId, Maintenance, OutboxStore};
use outbox_sqlx::{PgStore, SqliteStore};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
};
use sqlx::{ConnectOptions, Connection};

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

/// What the outbox still has for two receivers, read from its tables.
const HELD_SQLITE: &str =
    "SELECT 0 AS dead, lower(hex(id)) AS id FROM outbox_events WHERE destination IN ($1, $2)
    UNION ALL SELECT 1, lower(hex(id)) FROM outbox_dead WHERE destination IN ($1, $2)";
const HELD_POSTGRES: &str =
    "SELECT 0 AS dead, id::text AS id FROM outbox_events WHERE destination IN ($1, $2)
    UNION ALL SELECT 1, id::text FROM outbox_dead WHERE destination IN ($1, $2)";

/// Ids of events that the outbox still has.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) open: HashSet<String>,
    pub(crate) dead: HashSet<String>,
}

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
                let options = PgConnectOptions::from_str(url)
                    .map_err(|error| format!("--database-url: {error}"))?;
                // A pool tries until it times out; a single connection says what is wrong.
                let first = options
                    .connect()
                    .await
                    .map_err(|error| no_server(&options, &error))?;
                first.close().await?;
                let pool = PgPoolOptions::new().max_connections(16);
                let pool = pool.connect_with(options).await?;
                let store = PgStore::new(pool.clone());
                store.migrate().await?;
                sqlx::query(SCHEMA).execute(&pool).await?;
                Ok(Self::Postgres(pool, store))
            }
            Some(DatabaseUrl::Sqlite(url)) => {
                let options = SqliteConnectOptions::from_str(url)
                    .map_err(|error| format!("--database-url: {error}"))?
                    .create_if_missing(!url.contains("mode="))
                    .journal_mode(SqliteJournalMode::Wal);
                Self::open_sqlite(options).await
            }
            None => Self::open_sqlite(SqliteStore::options(folder.join("quickstart.db"))).await,
        }
    }

    async fn open_sqlite(options: SqliteConnectOptions) -> Result<Self, AnyError> {
        let pool = SqlitePoolOptions::new()
            .max_connections(8)
            .connect_with(options.clone())
            .await
            .map_err(|error| no_file(&options, &error))?;
        let store = SqliteStore::new(pool.clone())?;
        store
            .migrate()
            .await
            .map_err(|error| no_file(&options, &error))?;
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

    /// What the outbox still has for these receivers. It reads the tables, so that it does not
    /// depend on what the relay or the store count.
    pub(crate) async fn held(&self, receivers: [&str; 2]) -> Result<Held, AnyError> {
        let [one, two] = receivers;
        let rows: Vec<(i32, String)> = match self {
            Self::Sqlite(pool, _) => {
                let query = sqlx::query_as(HELD_SQLITE).bind(one).bind(two);
                query.fetch_all(pool).await?
            }
            Self::Postgres(pool, _) => {
                let query = sqlx::query_as(HELD_POSTGRES).bind(one).bind(two);
                query.fetch_all(pool).await?
            }
        };
        let mut held = Held::default();
        for (dead, id) in rows {
            let ids = if dead == 1 {
                &mut held.dead
            } else {
                &mut held.open
            };
            ids.insert(id.parse::<EventId>()?.to_string());
        }
        Ok(held)
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

/// The server is named without the password.
fn no_server(options: &PgConnectOptions, error: &sqlx::Error) -> String {
    format!(
        "--database-url: PostgreSQL at {}:{}, database {}, user {}: {error}. Does the server run \
         there, and may this user connect to this database?",
        options.get_host(),
        options.get_port(),
        options
            .get_database()
            .unwrap_or_else(|| options.get_username()),
        options.get_username(),
    )
}

fn no_file(options: &SqliteConnectOptions, error: &dyn std::error::Error) -> String {
    format!(
        "--database-url: SQLite file {}: {error}. Does its folder exist, and may this user write \
         there? A file that is there must be an SQLite database.",
        options.get_filename().display()
    )
}

fn updated(rows: u64, push: &Push) -> Result<(), AnyError> {
    match rows {
        1 => Ok(()),
        _ => Err(format!("there is no repository {}", push.repository).into()),
    }
}
