//! Leased locks.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use super::state::Micros;
use crate::clock::{duration_micros, to_micros};
use crate::locks::check_name;
use crate::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks};

pub(super) type LockTable = HashMap<String, Lock>;

#[derive(Debug)]
pub(super) struct Lock {
    /// `None`: released, and cooling down.
    holder: Option<LeaseToken>,
    until: Micros,
}

impl MemoryStore {
    fn locks(&self) -> (MutexGuard<'_, LockTable>, Micros) {
        let now = to_micros(self.shared.clock.now());
        let locks = &self.shared.locks;
        (locks.lock().unwrap_or_else(PoisonError::into_inner), now)
    }
}

#[async_trait]
impl Locks for MemoryStore {
    async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
        check_name(&request.name)?;
        let (mut locks, now) = self.locks();
        if let Some(lock) = locks.get(&request.name)
            && lock.until > now
            && lock.holder != Some(request.token)
        {
            let left = u64::try_from(lock.until - now).unwrap_or(0);
            let retry_after = Duration::from_micros(left);
            return Ok(LockStatus::Held { retry_after });
        }
        let lock = Lock {
            holder: Some(request.token),
            until: now.saturating_add(duration_micros(request.lease)),
        };
        locks.insert(request.name.clone(), lock);
        Ok(LockStatus::Acquired)
    }

    async fn extend_lock(
        &self,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        check_name(name)?;
        let (mut locks, now) = self.locks();
        Ok(change(&mut locks, name, token, |lock| {
            lock.until = now.saturating_add(duration_micros(by));
        }))
    }

    async fn unlock(
        &self,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        check_name(name)?;
        let (mut locks, now) = self.locks();
        Ok(change(&mut locks, name, token, |lock| {
            lock.holder = None;
            lock.until = now.saturating_add(duration_micros(cooldown));
        }))
    }
}

fn change(
    locks: &mut LockTable,
    name: &str,
    token: LeaseToken,
    change: impl FnOnce(&mut Lock),
) -> LeaseStatus {
    match locks.get_mut(name) {
        Some(lock) if lock.holder == Some(token) => {
            change(lock);
            LeaseStatus::Ours
        }
        Some(Lock {
            holder: Some(_), ..
        }) => LeaseStatus::Lost,
        _ => LeaseStatus::Unknown,
    }
}
