//! Idempotency keys and inbox ids.

/// Implements [`IdempotencyKeys`](outbox_core::IdempotencyKeys) and, through any asynchronous
/// connection to the database, [`Inbox`](outbox_core::Inbox) for a store.
macro_rules! idempotency {
    ($(#[$inbox:meta])* $store:ty, $database:ty) => {
        use std::time::Duration;

        use diesel_async::AsyncConnectionCore;
        use outbox_core::{
            Accepted, BeginKey, Begun, CompleteKey, Error, IdempotencyKey, IdempotencyKeys, Inbox,
            InboxMessage, LeaseStatus, LeaseToken, async_trait,
        };

        use crate::run::Asynchronous;
        use crate::session::Connection;

        #[async_trait]
        impl IdempotencyKeys for $store {
            async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
                self.on_pool("begin_key", request.clone(), |store, session, request| {
                    let (sql, clock) = (&store.sql.idempotency, store.store_clock());
                    Box::pin(sql.begin_key(session, clock, request))
                })
                .await
            }

            async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
                let request = request.clone();
                self.on_pool("complete_key", request, |store, session, request| {
                    let (sql, clock) = (&store.sql.idempotency, store.store_clock());
                    Box::pin(sql.complete_key(session, clock, request))
                })
                .await
            }

            async fn abandon_key(
                &self,
                key: &IdempotencyKey,
                token: LeaseToken,
            ) -> Result<LeaseStatus, Error> {
                let asked = (key.clone(), token);
                self.on_pool("abandon_key", asked, |store, session, (key, token)| {
                    let (sql, clock) = (&store.sql.idempotency, store.store_clock());
                    Box::pin(sql.abandon_key(session, clock, key, *token))
                })
                .await
            }

            async fn extend_key(
                &self,
                key: &IdempotencyKey,
                token: LeaseToken,
                by: Duration,
            ) -> Result<LeaseStatus, Error> {
                let asked = (key.clone(), token, by);
                self.on_pool("extend_key", asked, |store, session, (key, token, by)| {
                    let (sql, clock) = (&store.sql.idempotency, store.store_clock());
                    Box::pin(sql.extend_key(session, clock, key, *token, *by))
                })
                .await
            }

            async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
                let keys = self.on_pool("prune_keys", rows, |store, session, rows| {
                    let (sql, clock) = (&store.sql.idempotency, store.store_clock());
                    Box::pin(sql.prune_keys(session, clock, *rows))
                });
                let keys = keys.await?;
                let ids = self.on_pool("prune_inbox", rows, |store, session, rows| {
                    let (sql, clock) = (&store.sql.idempotency, store.store_clock());
                    Box::pin(sql.prune_inbox(session, clock, *rows))
                });
                Ok(keys + ids.await?)
            }
        }

        $(#[$inbox])*
        #[async_trait]
        impl<C: AsyncConnectionCore<Backend = $database>> Inbox<C> for $store {
            async fn accept(
                &self,
                conn: &mut C,
                message: &InboxMessage,
            ) -> Result<Accepted, Error> {
                let mut session = Connection::new(Asynchronous(conn), "accept");
                let (sql, clock) = (&self.sql.idempotency, self.store_clock());
                sql.accept(&mut session, clock, message).await
            }
        }
    };
}
pub(crate) use idempotency;
