//! Leased locks.

/// Implements [`Locks`](outbox_core::Locks) for a store, by the `call!` of its database.
macro_rules! locks {
    ($store:ty, $call:ident) => {
        use std::time::Duration;

        use outbox_core::{
            Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait,
        };

        #[async_trait]
        impl Locks for $store {
            async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
                $call!(self, locks.try_lock(request))
            }

            async fn extend_lock(
                &self,
                name: &str,
                token: LeaseToken,
                by: Duration,
            ) -> Result<LeaseStatus, Error> {
                $call!(self, locks.extend_lock(name, token, by))
            }

            async fn unlock(
                &self,
                name: &str,
                token: LeaseToken,
                cooldown: Duration,
            ) -> Result<LeaseStatus, Error> {
                $call!(self, locks.unlock(name, token, cooldown))
            }
        }
    };
}
pub(crate) use locks;
