//! Idempotency keys and inbox ids.

use std::time::Duration;

use diesel::pg::Pg;
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::{InboxRow, KeyRow, Sql, accepted, micros, owner};
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, IdempotencyKey, IdempotencyKeys,
    Inbox, InboxMessage, LeaseStatus, LeaseToken, async_trait,
};

use super::error::classify;
use super::value::{Id, Value};
use super::{PgStore, execute, retried, rows};
use crate::rows::Another;
use crate::run;
use crate::statement::Statement;

fn on<'q>(key: &'q IdempotencyKey, more: impl IntoIterator<Item = Value<'q>>) -> Vec<Value<'q>> {
    let mut values = vec![Value::Text(Some(key.scope())), Value::Text(Some(key.key()))];
    values.extend(more);
    values
}

fn id(token: LeaseToken) -> Value<'static> {
    Value::Uuid(Id(*token.as_bytes()))
}

fn period(duration: Duration) -> Value<'static> {
    Value::BigInt(Some(micros(duration)))
}

#[async_trait]
impl IdempotencyKeys for PgStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        retried!(self.begin_key_once(request))
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        let values = || {
            let answer = Value::Bytes(&request.answer);
            let retention = period(request.retention);
            on(&request.key, [id(request.token), answer, retention])
        };
        let sql = &self.sql.idempotency.complete;
        retried!(self.prove("complete_key", &request.key, request.token, sql, values()))
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        let sql = &self.sql.idempotency.abandon;
        retried!(self.prove("abandon_key", key, token, sql, on(key, [id(token)])))
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let sql = &self.sql.idempotency.extend;
        let values = || on(key, [id(token), period(by)]);
        retried!(self.prove("extend_key", key, token, sql, values()))
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        let sql = &self.sql.idempotency;
        let mut pruned = 0;
        for prune in [&sql.prune_keys, &sql.prune_inbox] {
            let values = || vec![Value::BigInt(Some(rows.into()))];
            pruned += retried!(self.changed("prune_keys", prune, values()))?;
        }
        Ok(pruned)
    }
}

impl PgStore {
    async fn begin_key_once(&self, request: &BeginKey) -> Result<Begun, Error> {
        let sql = &self.sql.idempotency;
        let mut conn = self.connection().await?;
        let values = |more: &[Duration]| {
            let print = Value::Bytes(request.fingerprint.as_bytes());
            let more = more.iter().map(|by| period(*by));
            on(
                &request.key,
                [print, id(request.token)].into_iter().chain(more),
            )
        };
        let begin = values(&[request.lease, request.retention]);
        if execute(&mut conn, "begin_key", &sql.begin, begin).await? > 0 {
            return Ok(Begun::Started);
        }
        let mut found = rows(&mut conn, "begin_key", &sql.look, values(&[])).await?;
        found
            .pop()
            .map(KeyRow::begun)
            .ok_or_else(|| Error::new(ErrorKind::Conflict, "begin_key: the key is free by now"))
    }

    /// Runs a statement that changes the row of this token; tells what it is where it is not.
    async fn prove(
        &self,
        operation: &'static str,
        key: &IdempotencyKey,
        token: LeaseToken,
        sql: &Sql,
        values: Vec<Value<'_>>,
    ) -> Result<LeaseStatus, Error> {
        if self.changed(operation, sql, values).await? > 0 {
            return Ok(LeaseStatus::Ours);
        }
        let sql = &self.sql.idempotency.owner;
        self.another(operation, sql, on(key, [id(token)])).await
    }

    /// Whose the lease is that was not changed.
    pub(super) async fn another(
        &self,
        operation: &'static str,
        sql: &Sql,
        values: Vec<Value<'_>>,
    ) -> Result<LeaseStatus, Error> {
        let mut conn = self.connection().await?;
        let mut found = rows(&mut conn, operation, sql, values).await?;
        Ok(owner(found.pop().map(|Another(another)| another)))
    }

    /// How many rows a statement changed.
    pub(super) async fn changed(
        &self,
        operation: &'static str,
        sql: &Sql,
        values: Vec<Value<'_>>,
    ) -> Result<u64, Error> {
        let mut conn = self.connection().await?;
        execute(&mut conn, operation, sql, values).await
    }
}

/// Through any asynchronous connection to PostgreSQL, pooled ones included.
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Pg>> Inbox<C> for PgStore {
    async fn accept(&self, conn: &mut C, message: &InboxMessage) -> Result<Accepted, Error> {
        let failed = |error| classify("accept", error);
        let sql = &self.sql.idempotency;
        let print = message
            .fingerprint
            .as_ref()
            .map(|print| &print.as_bytes()[..]);
        let accept = on(
            &message.key,
            [Value::MaybeBytes(print), period(message.retention)],
        );
        let new = run::execute(conn, Statement::new(&sql.accept, accept));
        if new.await.map_err(failed)? > 0 {
            return Ok(Accepted::First);
        }
        let look = Statement::new(&sql.accepted, on(&message.key, []));
        let mut found: Vec<InboxRow> = run::rows(conn, look).await.map_err(failed)?;
        accepted(found.pop(), message.fingerprint)
    }
}
