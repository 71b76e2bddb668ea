//! Idempotency keys and inbox ids.

use std::time::Duration;

use diesel::sqlite::Sqlite;
use diesel::{QueryResult, SqliteConnection};
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::{InboxRow, KeyRow, Sql, accepted, owner};
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, ErrorKind, IdempotencyKey, IdempotencyKeys,
    Inbox, InboxMessage, LeaseStatus, LeaseToken, async_trait,
};

use super::error::classify;
use super::value::Value;
use super::{SqliteStore, execute, rows};
use crate::rows::Another;
use crate::run;
use crate::statement::Statement;

/// How often a run asks for a key that came free between two statements.
const TRIES: u32 = 4;

fn on<'q>(key: &'q IdempotencyKey, more: impl IntoIterator<Item = Value<'q>>) -> Vec<Value<'q>> {
    let mut values = vec![Value::text(Some(key.scope())), Value::text(Some(key.key()))];
    values.extend(more);
    values
}

fn id(token: LeaseToken) -> Value<'static> {
    Value::Id(*token.as_bytes())
}

#[async_trait]
impl IdempotencyKeys for SqliteStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        let request = request.clone();
        let begun = self
            .on_pool("begin_key", move |store, conn| {
                store.begin_key_on(conn, &request)
            })
            .await?;
        let problem = "begin_key: others are faster each time";
        begun.ok_or_else(|| Error::new(ErrorKind::Conflict, problem))
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        let request = request.clone();
        self.on_pool("complete_key", move |store, conn| {
            let (key, token) = (&request.key, request.token);
            let answer = Value::Bytes(&request.answer);
            let until = Value::number(store.in_micros(request.retention));
            let values = on(key, [id(token), answer, until]);
            store.prove(conn, key, token, &store.sql.idempotency.complete, values)
        })
        .await
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        let key = key.clone();
        self.on_pool("abandon_key", move |store, conn| {
            let sql = &store.sql.idempotency.abandon;
            store.prove(conn, &key, token, sql, on(&key, [id(token)]))
        })
        .await
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let key = key.clone();
        self.on_pool("extend_key", move |store, conn| {
            let values = on(&key, [id(token), Value::number(store.in_micros(by))]);
            store.prove(conn, &key, token, &store.sql.idempotency.extend, values)
        })
        .await
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        self.on_pool("prune_keys", move |store, conn| {
            let sql = &store.sql.idempotency;
            let mut pruned = 0;
            for prune in [&sql.prune_keys, &sql.prune_inbox] {
                let values = vec![Value::number(store.now_micros()), Value::number(rows)];
                pruned += execute(conn, prune, values)?;
            }
            Ok(pruned)
        })
        .await
    }
}

impl SqliteStore {
    /// `None` where the key came free each time after it was found taken.
    fn begin_key_on(
        &self,
        conn: &mut SqliteConnection,
        request: &BeginKey,
    ) -> QueryResult<Option<Begun>> {
        let sql = &self.sql.idempotency;
        for _ in 0..TRIES {
            let now = self.now_micros();
            let values = |more: &[Duration]| {
                let print = Value::Bytes(request.fingerprint.as_bytes());
                let start = [print, id(request.token), Value::number(now)];
                let more = more.iter().map(|by| Value::number(self.in_micros(*by)));
                on(&request.key, start.into_iter().chain(more))
            };
            let begin = values(&[request.lease, request.retention]);
            if execute(conn, &sql.begin, begin)? > 0 {
                return Ok(Some(Begun::Started));
            }
            if let Some(found) = rows(conn, &sql.look, values(&[]))?.pop() {
                return Ok(Some(KeyRow::begun(found)));
            }
        }
        Ok(None)
    }

    /// Runs a statement that changes the row of this token; tells what it is where it is not.
    fn prove(
        &self,
        conn: &mut SqliteConnection,
        key: &IdempotencyKey,
        token: LeaseToken,
        sql: &Sql,
        values: Vec<Value<'_>>,
    ) -> QueryResult<LeaseStatus> {
        if execute(conn, sql, values)? > 0 {
            return Ok(LeaseStatus::Ours);
        }
        another(conn, &self.sql.idempotency.owner, on(key, [id(token)]))
    }
}

/// Whose the lease is that was not changed.
pub(super) fn another(
    conn: &mut SqliteConnection,
    sql: &Sql,
    values: Vec<Value<'_>>,
) -> QueryResult<LeaseStatus> {
    let mut found = rows(conn, sql, values)?;
    Ok(owner(found.pop().map(|Another(another)| another)))
}

/// Through any asynchronous connection to SQLite, pooled ones included. Begin the transaction as a
/// writer (`BEGIN IMMEDIATE`).
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Sqlite>> Inbox<C> for SqliteStore {
    async fn accept(&self, conn: &mut C, message: &InboxMessage) -> Result<Accepted, Error> {
        let failed = |error| classify("accept", error);
        let sql = &self.sql.idempotency;
        let print = message
            .fingerprint
            .as_ref()
            .map(|print| &print.as_bytes()[..]);
        let accept = on(
            &message.key,
            [
                Value::MaybeBytes(print),
                Value::number(self.now_micros()),
                Value::number(self.in_micros(message.retention)),
            ],
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
