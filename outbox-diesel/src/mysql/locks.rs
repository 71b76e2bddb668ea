//! Leased locks.

use std::time::Duration;

use outbox_core::sql::mysql;
use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};

use super::MySqlStore;

#[async_trait]
impl Locks for MySqlStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        self.on_pool("try_lock", request.clone(), |store, session, request| {
            Box::pin(mysql::try_lock(session, &store.sql, request))
        })
        .await
    }

    async fn extend_lock(
        &self,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let asked = (name.to_owned(), token, by);
        self.on_pool("extend_lock", asked, |store, session, (name, token, by)| {
            Box::pin(mysql::extend_lock(session, &store.sql, name, *token, *by))
        })
        .await
    }

    async fn unlock(
        &self,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        let asked = (name.to_owned(), token, cooldown);
        self.on_pool("unlock", asked, |store, session, (name, token, by)| {
            Box::pin(mysql::unlock(session, &store.sql, name, *token, *by))
        })
        .await
    }
}
