//! Leased locks.

use std::time::Duration;

use outbox_core::sql::{Sql, lock_name, lock_status};
use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};
use sqlx::Row;

use super::SqliteStore;
use super::error::classify;
use crate::query;

#[async_trait]
impl Locks for SqliteStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        lock_name(&request.name)?;
        let now = self.now_micros();
        let acquire = query(&self.sql.locks.acquire)
            .bind(&request.name)
            .bind(&request.token.as_bytes()[..])
            .bind(self.in_micros(request.lease))
            .bind(now);
        if self.changed("try_lock", acquire).await? > 0 {
            return Ok(LockStatus::Acquired);
        }
        let left = query(&self.sql.locks.left)
            .bind(&request.name)
            .bind(now)
            .fetch_optional(&self.pool)
            .await;
        left.and_then(|row| row.map(|row| row.try_get(0)).transpose())
            .map(lock_status)
            .map_err(|error| classify("try_lock", error))
    }

    async fn extend_lock(
        &self,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        self.hold_lock("extend_lock", &self.sql.locks.extend, name, token, by)
            .await
    }

    async fn unlock(
        &self,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        self.hold_lock("unlock", &self.sql.locks.unlock, name, token, cooldown)
            .await
    }
}

impl SqliteStore {
    async fn hold_lock(
        &self,
        operation: &'static str,
        sql: &Sql,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        lock_name(name)?;
        let change = query(sql)
            .bind(name)
            .bind(&token.as_bytes()[..])
            .bind(self.in_micros(by));
        if self.changed(operation, change).await? > 0 {
            return Ok(LeaseStatus::Ours);
        }
        let owner = query(&self.sql.locks.owner)
            .bind(name)
            .bind(&token.as_bytes()[..]);
        self.another(operation, owner).await
    }
}
