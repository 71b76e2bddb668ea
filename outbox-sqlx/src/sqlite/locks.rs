//! Leased locks.

use std::time::Duration;

use outbox_core::sql::sqlite;
use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};

use super::SqliteStore;

#[async_trait]
impl Locks for SqliteStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        let mut session = self.connection("try_lock").await?;
        sqlite::try_lock(&mut session, &self.sql, &*self.clock, request).await
    }

    async fn extend_lock(
        &self,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let mut session = self.connection("extend_lock").await?;
        sqlite::extend_lock(&mut session, &self.sql, &*self.clock, name, token, by).await
    }

    async fn unlock(
        &self,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        let (mut session, clock) = (self.connection("unlock").await?, &*self.clock);
        sqlite::unlock(&mut session, &self.sql, clock, name, token, cooldown).await
    }
}
