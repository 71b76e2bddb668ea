//! Idempotency keys and inbox ids.

use std::time::Duration;

use outbox_core::sql::{InboxRow, KeyRow, Sql, accepted, owner};
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, IdempotencyKey, IdempotencyKeys,
    Inbox, InboxMessage, LeaseStatus, LeaseToken, async_trait,
};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Row, Sqlite};

use super::SqliteStore;
use super::error::classify;
use crate::query;

/// How often a run asks for a key that came free between two statements.
const TRIES: u32 = 4;

fn on<'q>(sql: &'q Sql, key: &'q IdempotencyKey) -> Query<'q, Sqlite, SqliteArguments> {
    query(sql).bind(key.scope()).bind(key.key())
}

#[async_trait]
impl IdempotencyKeys for SqliteStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        for _ in 0..TRIES {
            if let Some(begun) = self.begin_key_once(request).await? {
                return Ok(begun);
            }
        }
        let problem = "begin_key: others are faster each time";
        Err(Error::new(ErrorKind::Conflict, problem))
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        let complete = on(&self.sql.idempotency.complete, &request.key)
            .bind(&request.token.as_bytes()[..])
            .bind(&request.answer[..])
            .bind(self.in_micros(request.retention));
        self.prove("complete_key", &request.key, request.token, complete)
            .await
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        let abandon = on(&self.sql.idempotency.abandon, key).bind(&token.as_bytes()[..]);
        self.prove("abandon_key", key, token, abandon).await
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let extend = on(&self.sql.idempotency.extend, key)
            .bind(&token.as_bytes()[..])
            .bind(self.in_micros(by));
        self.prove("extend_key", key, token, extend).await
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        let sql = &self.sql.idempotency;
        let mut pruned = 0;
        for prune in [&sql.prune_keys, &sql.prune_inbox] {
            let prune = query(prune).bind(self.now_micros()).bind(rows);
            pruned += self.changed("prune_keys", prune).await?;
        }
        Ok(pruned)
    }
}

impl SqliteStore {
    /// `None` where the key came free after it was found taken.
    async fn begin_key_once(&self, request: &BeginKey) -> Result<Option<Begun>, Error> {
        let sql = &self.sql.idempotency;
        let now = self.now_micros();
        let start = |sql| {
            on(sql, &request.key)
                .bind(&request.fingerprint.as_bytes()[..])
                .bind(&request.token.as_bytes()[..])
                .bind(now)
        };
        let begin = start(&sql.begin)
            .bind(self.in_micros(request.lease))
            .bind(self.in_micros(request.retention));
        if self.changed("begin_key", begin).await? > 0 {
            return Ok(Some(Begun::Started));
        }
        let failed = |error| classify("begin_key", error);
        let found = start(&sql.look).fetch_optional(&self.pool).await;
        let Some(found) = found.map_err(failed)? else {
            return Ok(None);
        };
        let row = || {
            Ok(KeyRow {
                same: found.try_get(0)?,
                answer: found.try_get(1)?,
                left: found.try_get(2)?,
            })
        };
        row().map(|row| Some(row.begun())).map_err(failed)
    }

    /// Runs a statement that changes the row of this token; tells what it is where it is not.
    async fn prove(
        &self,
        operation: &'static str,
        key: &IdempotencyKey,
        token: LeaseToken,
        statement: Query<'_, Sqlite, SqliteArguments>,
    ) -> Result<LeaseStatus, Error> {
        if self.changed(operation, statement).await? > 0 {
            return Ok(LeaseStatus::Ours);
        }
        let another = on(&self.sql.idempotency.owner, key).bind(&token.as_bytes()[..]);
        self.another(operation, another).await
    }

    /// Whose the lease is that was not changed.
    pub(super) async fn another(
        &self,
        operation: &'static str,
        statement: Query<'_, Sqlite, SqliteArguments>,
    ) -> Result<LeaseStatus, Error> {
        let found = statement.fetch_optional(&self.pool).await;
        found
            .and_then(|row| row.map(|row| row.try_get(0)).transpose())
            .map(owner)
            .map_err(|error| classify(operation, error))
    }

    /// How many rows a statement changed.
    pub(super) async fn changed(
        &self,
        operation: &'static str,
        statement: Query<'_, Sqlite, SqliteArguments>,
    ) -> Result<u64, Error> {
        let done = statement.execute(&self.pool).await;
        done.map(|done| done.rows_affected())
            .map_err(|error| classify(operation, error))
    }
}

/// Through a `&mut SqliteConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves. Begin the transaction with [`SqliteStore::begin_immediate`].
#[async_trait]
impl Inbox<SqliteConnection> for SqliteStore {
    async fn accept(
        &self,
        conn: &mut SqliteConnection,
        message: &InboxMessage,
    ) -> Result<Accepted, Error> {
        let failed = |error| classify("accept", error);
        let sql = &self.sql.idempotency;
        let new = on(&sql.accept, &message.key)
            .bind(
                message
                    .fingerprint
                    .as_ref()
                    .map(|print| &print.as_bytes()[..]),
            )
            .bind(self.now_micros())
            .bind(self.in_micros(message.retention))
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
        if new.rows_affected() > 0 {
            return Ok(Accepted::First);
        }
        let found = on(&sql.accepted, &message.key).fetch_optional(conn).await;
        let row = found
            .and_then(|row| row.map(|row| row.try_get(0).map(InboxRow)).transpose())
            .map_err(failed)?;
        accepted(row, message.fingerprint)
    }
}
