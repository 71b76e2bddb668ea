//! Idempotency keys and inbox ids.

use std::time::Duration;

use diesel::mysql::Mysql;
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::mysql;
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage, LeaseStatus, LeaseToken, async_trait,
};

use super::MySqlStore;
use crate::run::Asynchronous;
use crate::session::Connection;

#[async_trait]
impl IdempotencyKeys for MySqlStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        self.on_pool("begin_key", request.clone(), |store, session, request| {
            Box::pin(mysql::begin_key(session, &store.sql, request))
        })
        .await
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        let request = request.clone();
        self.on_pool("complete_key", request, |store, session, request| {
            Box::pin(mysql::complete_key(session, &store.sql, request))
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
            Box::pin(mysql::abandon_key(session, &store.sql, key, *token))
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
            Box::pin(mysql::extend_key(session, &store.sql, key, *token, *by))
        })
        .await
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        let keys = self.on_pool("prune_keys", rows, |store, session, rows| {
            Box::pin(mysql::prune_keys(session, &store.sql, *rows))
        });
        let keys = keys.await?;
        let ids = self.on_pool("prune_inbox", rows, |store, session, rows| {
            Box::pin(mysql::prune_inbox(session, &store.sql, *rows))
        });
        Ok(keys + ids.await?)
    }
}

/// Through any asynchronous connection to MySQL, pooled ones included.
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Mysql>> Inbox<C> for MySqlStore {
    async fn accept(&self, conn: &mut C, message: &InboxMessage) -> Result<Accepted, Error> {
        let mut session = Connection::new(Asynchronous(conn), "accept");
        mysql::accept(&mut session, &self.sql, message).await
    }
}
