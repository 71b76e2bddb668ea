//! Idempotency keys and inbox ids.

use std::time::Duration;

use diesel::pg::Pg;
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::pg;
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage, LeaseStatus, LeaseToken, async_trait,
};

use super::PgStore;
use super::calls::call;
use crate::run::Asynchronous;
use crate::session::Connection;

#[async_trait]
impl IdempotencyKeys for PgStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        call!(self, begin_key(request))
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        call!(self, complete_key(request))
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        call!(self, abandon_key(key, token))
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        call!(self, extend_key(key, token, by))
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        let keys = call!(self, prune_keys(rows))?;
        Ok(keys + call!(self, prune_inbox(rows))?)
    }
}

/// Through any asynchronous connection to PostgreSQL, pooled ones included.
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Pg>> Inbox<C> for PgStore {
    async fn accept(&self, conn: &mut C, message: &InboxMessage) -> Result<Accepted, Error> {
        let mut session = Connection::new(Asynchronous(conn), "accept");
        pg::accept(&mut session, &self.sql, message).await
    }
}
