//! Leased locks.

use std::time::Duration;

use outbox_core::sql::{Sql, lock_name, lock_status, micros};
use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};
use sqlx::Row;
use sqlx::types::Uuid;

use super::PgStore;
use super::error::classify;
use crate::query;
use crate::retry::retried;

fn uuid(token: LeaseToken) -> Uuid {
    Uuid::from_bytes(*token.as_bytes())
}

#[async_trait]
impl Locks for PgStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        lock_name(&request.name)?;
        let acquire = || {
            query(&self.sql.locks.acquire)
                .bind(&request.name)
                .bind(uuid(request.token))
                .bind(micros(request.lease))
        };
        if retried!(self.changed("try_lock", acquire()))? > 0 {
            return Ok(LockStatus::Acquired);
        }
        let left = query(&self.sql.locks.left).bind(&request.name);
        let found = self.fetch_all("try_lock", left).await?;
        let left = found.first().map(|row| row.try_get(0));
        left.transpose()
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

impl PgStore {
    async fn hold_lock(
        &self,
        operation: &'static str,
        sql: &Sql,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        lock_name(name)?;
        let change = || query(sql).bind(name).bind(uuid(token)).bind(micros(by));
        if retried!(self.changed(operation, change()))? > 0 {
            return Ok(LeaseStatus::Ours);
        }
        let owner = query(&self.sql.locks.owner).bind(name).bind(uuid(token));
        self.another(operation, owner).await
    }
}
