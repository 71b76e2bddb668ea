//! Idempotency keys and inbox ids.

use std::time::Duration;

use outbox_core::sql::{InboxRow, KeyRow, Sql, accepted, micros, owner};
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, IdempotencyKey, IdempotencyKeys,
    Inbox, InboxMessage, LeaseStatus, LeaseToken, async_trait,
};
use sqlx::types::Uuid;
use sqlx::{PgConnection, Row};

use super::PgStore;
use super::error::classify;
use super::session::Statement;
use crate::query;
use crate::retry::retried;

fn on<'q>(sql: &'q Sql, key: &'q IdempotencyKey) -> Statement<'q> {
    query(sql).bind(key.scope()).bind(key.key())
}

fn uuid(token: LeaseToken) -> Uuid {
    Uuid::from_bytes(*token.as_bytes())
}

#[async_trait]
impl IdempotencyKeys for PgStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        retried!(self.begin_key_once(request))
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        let complete = || {
            on(&self.sql.idempotency.complete, &request.key)
                .bind(uuid(request.token))
                .bind(&request.answer[..])
                .bind(micros(request.retention))
        };
        retried!(self.prove("complete_key", &request.key, request.token, complete()))
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        let abandon = || on(&self.sql.idempotency.abandon, key).bind(uuid(token));
        retried!(self.prove("abandon_key", key, token, abandon()))
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let extend = || {
            on(&self.sql.idempotency.extend, key)
                .bind(uuid(token))
                .bind(micros(by))
        };
        retried!(self.prove("extend_key", key, token, extend()))
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        let sql = &self.sql.idempotency;
        let mut pruned = 0;
        for prune in [&sql.prune_keys, &sql.prune_inbox] {
            pruned += retried!(self.changed("prune_keys", query(prune).bind(i64::from(rows))))?;
        }
        Ok(pruned)
    }
}

impl PgStore {
    async fn begin_key_once(&self, request: &BeginKey) -> Result<Begun, Error> {
        let sql = &self.sql.idempotency;
        let begin = on(&sql.begin, &request.key)
            .bind(&request.fingerprint.as_bytes()[..])
            .bind(uuid(request.token))
            .bind(micros(request.lease))
            .bind(micros(request.retention));
        if self.changed("begin_key", begin).await? > 0 {
            return Ok(Begun::Started);
        }
        let look = on(&sql.look, &request.key)
            .bind(&request.fingerprint.as_bytes()[..])
            .bind(uuid(request.token));
        let mut found = self.fetch_all("begin_key", look).await?;
        let found = found
            .pop()
            .ok_or_else(|| Error::new(ErrorKind::Conflict, "begin_key: the key is free by now"))?;
        let row = || {
            Ok(KeyRow {
                same: found.try_get(0)?,
                answer: found.try_get(1)?,
                left: found.try_get(2)?,
            })
        };
        row()
            .map(KeyRow::begun)
            .map_err(|error| classify("begin_key", error))
    }

    /// Runs a statement that changes the row of this token; tells what it is where it is not.
    async fn prove(
        &self,
        operation: &'static str,
        key: &IdempotencyKey,
        token: LeaseToken,
        statement: Statement<'_>,
    ) -> Result<LeaseStatus, Error> {
        if self.changed(operation, statement).await? > 0 {
            return Ok(LeaseStatus::Ours);
        }
        let another = on(&self.sql.idempotency.owner, key).bind(uuid(token));
        self.another(operation, another).await
    }

    /// Whose the lease is that was not changed.
    pub(super) async fn another(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<LeaseStatus, Error> {
        let found = self.fetch_all(operation, statement).await?;
        let another = found.first().map(|row| row.try_get(0));
        another
            .transpose()
            .map(owner)
            .map_err(|error| classify(operation, error))
    }
}

/// Through a `&mut PgConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Inbox<PgConnection> for PgStore {
    async fn accept(
        &self,
        conn: &mut PgConnection,
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
            .bind(micros(message.retention))
            .persistent(!self.in_transactions)
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
        if new.rows_affected() > 0 {
            return Ok(Accepted::First);
        }
        let look = on(&sql.accepted, &message.key).persistent(!self.in_transactions);
        let found = look.fetch_optional(conn).await;
        let row = found
            .and_then(|row| row.map(|row| row.try_get(0).map(InboxRow)).transpose())
            .map_err(failed)?;
        accepted(row, message.fingerprint)
    }
}
