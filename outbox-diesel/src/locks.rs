//! Leased locks.

/// Implements [`Locks`](outbox_core::Locks) for a store.
macro_rules! locks {
    ($store:ty) => {
        use std::time::Duration;

        use outbox_core::{
            Error, LeaseStatus, LeaseToken, LockRequest, LockStatus, Locks, async_trait,
        };

        #[async_trait]
        impl Locks for $store {
            async fn try_lock(&self, request: &LockRequest) -> Result<LockStatus, Error> {
                self.on_pool("try_lock", request.clone(), |store, session, request| {
                    let (sql, clock) = (&store.sql.locks, store.store_clock());
                    Box::pin(sql.try_lock(session, clock, request))
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
                    let (sql, clock) = (&store.sql.locks, store.store_clock());
                    Box::pin(sql.extend_lock(session, clock, name, *token, *by))
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
                    let (sql, clock) = (&store.sql.locks, store.store_clock());
                    Box::pin(sql.unlock(session, clock, name, *token, *by))
                })
                .await
            }
        }
    };
}
pub(crate) use locks;
