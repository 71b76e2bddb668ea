//! Leased locks.

use std::time::Duration;

use outbox_core::sql::sqlite::LockStatements;
use outbox_core::sql::{Sql, lock_name, lock_status};
use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};

use super::idempotency::another;
use super::value::Value;
use super::{SqliteStore, execute, rows};
use crate::rows::Left;

#[async_trait]
impl Locks for SqliteStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        lock_name(&request.name)?;
        let request = request.clone();
        self.on_pool("try_lock", move |store, conn| {
            let (sql, now) = (&store.sql.locks, store.now_micros());
            let name = || Value::text(Some(&request.name));
            let acquire = vec![
                name(),
                Value::Id(*request.token.as_bytes()),
                Value::number(store.in_micros(request.lease)),
                Value::number(now),
            ];
            if execute(conn, &sql.acquire, acquire)? > 0 {
                return Ok(LockStatus::Acquired);
            }
            let mut found = rows(conn, &sql.left, vec![name(), Value::number(now)])?;
            Ok(lock_status(found.pop().map(|Left(micros)| micros)))
        })
        .await
    }

    async fn extend_lock(
        &self,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        self.hold_lock("extend_lock", |sql| &sql.extend, name, token, by)
            .await
    }

    async fn unlock(
        &self,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        self.hold_lock("unlock", |sql| &sql.unlock, name, token, cooldown)
            .await
    }
}

impl SqliteStore {
    async fn hold_lock(
        &self,
        operation: &'static str,
        sql: fn(&LockStatements) -> &Sql,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        lock_name(name)?;
        let name = name.to_owned();
        self.on_pool(operation, move |store, conn| {
            let holder = || vec![Value::text(Some(&name)), Value::Id(*token.as_bytes())];
            let mut values = holder();
            values.push(Value::number(store.in_micros(by)));
            if execute(conn, sql(&store.sql.locks), values)? > 0 {
                return Ok(LeaseStatus::Ours);
            }
            another(conn, &store.sql.locks.owner, holder())
        })
        .await
    }
}
