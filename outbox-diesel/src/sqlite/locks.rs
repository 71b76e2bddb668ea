//! Leased locks.

use std::time::Duration;

use outbox_core::sql::sqlite;
use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};

use super::SqliteStore;

#[async_trait]
impl Locks for SqliteStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        self.on_pool("try_lock", request.clone(), |store, session, request| {
            Box::pin(sqlite::try_lock(
                session,
                &store.sql,
                &*store.clock,
                request,
            ))
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
            let (sql, clock) = (&store.sql, &*store.clock);
            Box::pin(sqlite::extend_lock(session, sql, clock, name, *token, *by))
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
            let (sql, clock) = (&store.sql, &*store.clock);
            Box::pin(sqlite::unlock(session, sql, clock, name, *token, *by))
        })
        .await
    }
}
