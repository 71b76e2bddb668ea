//! Leased locks.

use std::time::Duration;

use outbox_core::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait};

use super::PgStore;
use super::calls::call;

#[async_trait]
impl Locks for PgStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        call!(self, try_lock(request))
    }

    async fn extend_lock(
        &self,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        call!(self, extend_lock(name, token, by))
    }

    async fn unlock(
        &self,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        call!(self, unlock(name, token, cooldown))
    }
}
