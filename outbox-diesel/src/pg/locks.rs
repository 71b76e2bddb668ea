//! Leased locks.

use std::time::Duration;

use outbox_core::sql::{Sql, lock_name, lock_status, micros};
use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};

use super::value::{Id, Value};
use super::{PgStore, retried, rows};
use crate::rows::Left;

fn lease(name: &str, token: LeaseToken, by: Duration) -> Vec<Value<'_>> {
    vec![
        Value::Text(Some(name)),
        Value::Uuid(Id(*token.as_bytes())),
        Value::BigInt(Some(micros(by))),
    ]
}

#[async_trait]
impl Locks for PgStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        lock_name(&request.name)?;
        let sql = &self.sql.locks;
        let values = || lease(&request.name, request.token, request.lease);
        if retried!(self.changed("try_lock", &sql.acquire, values()))? > 0 {
            return Ok(LockStatus::Acquired);
        }
        let mut conn = self.connection().await?;
        let name = vec![Value::Text(Some(&request.name))];
        let mut found = rows(&mut conn, "try_lock", &sql.left, name).await?;
        Ok(lock_status(found.pop().map(|Left(micros)| micros)))
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
        if retried!(self.changed(operation, sql, lease(name, token, by)))? > 0 {
            return Ok(LeaseStatus::Ours);
        }
        let owner = vec![Value::Text(Some(name)), Value::Uuid(Id(*token.as_bytes()))];
        self.another(operation, &self.sql.locks.owner, owner).await
    }
}
