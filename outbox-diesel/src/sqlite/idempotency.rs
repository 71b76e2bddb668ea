//! Idempotency keys and inbox ids.

use std::time::Duration;

use diesel::sqlite::Sqlite;
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::sqlite;
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage, LeaseStatus, LeaseToken, async_trait,
};

use super::SqliteStore;
use crate::run::Asynchronous;
use crate::session::Connection;

#[async_trait]
impl IdempotencyKeys for SqliteStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        self.on_pool("begin_key", request.clone(), |store, session, request| {
            Box::pin(sqlite::begin_key(
                session,
                &store.sql,
                &*store.clock,
                request,
            ))
        })
        .await
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        let request = request.clone();
        self.on_pool("complete_key", request, |store, session, request| {
            let (sql, clock) = (&store.sql, &*store.clock);
            Box::pin(sqlite::complete_key(session, sql, clock, request))
        })
        .await
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        let asked = (key.clone(), token);
        self.on_pool("abandon_key", asked, |store, session, (key, token)| {
            Box::pin(sqlite::abandon_key(session, &store.sql, key, *token))
        })
        .await
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let asked = (key.clone(), token, by);
        self.on_pool("extend_key", asked, |store, session, (key, token, by)| {
            let (sql, clock) = (&store.sql, &*store.clock);
            Box::pin(sqlite::extend_key(session, sql, clock, key, *token, *by))
        })
        .await
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        self.on_pool("prune_keys", rows, |store, session, rows| {
            Box::pin(sqlite::prune_keys(
                session,
                &store.sql,
                &*store.clock,
                *rows,
            ))
        })
        .await
    }
}

/// Through any asynchronous connection to SQLite, pooled ones included. Begin the transaction as a
/// writer (`BEGIN IMMEDIATE`).
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Sqlite>> Inbox<C> for SqliteStore {
    async fn accept(&self, conn: &mut C, message: &InboxMessage) -> Result<Accepted, Error> {
        let mut session = Connection::new(Asynchronous(conn), "accept");
        sqlite::accept(&mut session, &self.sql, &*self.clock, message).await
    }
}
