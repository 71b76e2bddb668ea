//! Idempotency keys and inbox ids.

use std::time::Duration;

use outbox_core::sql::mysql;
use outbox_core::{
    Accepted, BeginKey, Begun, CompleteKey, Error, IdempotencyKey, IdempotencyKeys, Inbox,
    InboxMessage, LeaseStatus, LeaseToken, async_trait,
};
use sqlx::mysql::MySqlConnection;

use super::MySqlStore;
use super::session::Connection;
use crate::retry::retried;

/// Makes a call of autocommit statements on a pooled connection.
macro_rules! call {
    ($store:ident, $operation:ident($($argument:expr),*)) => {
        retried!(async {
            let mut session = $store.connection(stringify!($operation)).await?;
            mysql::$operation(&mut session, &$store.sql, $($argument),*).await
        })
    };
}

#[async_trait]
impl IdempotencyKeys for MySqlStore {
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

/// Through a `&mut MySqlConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Inbox<MySqlConnection> for MySqlStore {
    async fn accept(
        &self,
        conn: &mut MySqlConnection,
        message: &InboxMessage,
    ) -> Result<Accepted, Error> {
        let mut session = Connection::new(conn, "accept");
        mysql::accept(&mut session, &self.sql, message).await
    }
}
