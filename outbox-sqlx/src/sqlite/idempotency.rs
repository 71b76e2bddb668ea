//! Idempotency keys and inbox ids.

use std::time::Duration;

use outbox_core::sql::sqlite;
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage, LeaseStatus, LeaseToken, async_trait,
};
use sqlx::sqlite::SqliteConnection;

use super::SqliteStore;
use super::session::Connection;

#[async_trait]
impl IdempotencyKeys for SqliteStore {
    async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
        let mut session = self.connection("begin_key").await?;
        sqlite::begin_key(&mut session, &self.sql, &*self.clock, request).await
    }

    async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
        let mut session = self.connection("complete_key").await?;
        sqlite::complete_key(&mut session, &self.sql, &*self.clock, request).await
    }

    async fn abandon_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
    ) -> Result<LeaseStatus, Error> {
        let mut session = self.connection("abandon_key").await?;
        sqlite::abandon_key(&mut session, &self.sql, key, token).await
    }

    async fn extend_key(
        &self,
        key: &IdempotencyKey,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let mut session = self.connection("extend_key").await?;
        sqlite::extend_key(&mut session, &self.sql, &*self.clock, key, token, by).await
    }

    async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
        let mut session = self.connection("prune_keys").await?;
        sqlite::prune_keys(&mut session, &self.sql, &*self.clock, rows).await
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
        let mut session = Connection::new(conn, "accept");
        sqlite::accept(&mut session, &self.sql, &*self.clock, message).await
    }
}
