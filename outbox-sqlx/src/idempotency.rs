//! Idempotency keys and inbox ids.

/// Implements [`IdempotencyKeys`](outbox_core::IdempotencyKeys) for a store, by the `call!` of its
/// database.
macro_rules! idempotency {
    ($store:ty, $call:ident) => {
        use std::time::Duration;

        use outbox_core::{
            Accepted, BeginKey, Begun, CompleteKey, Error, IdempotencyKey, IdempotencyKeys, Inbox,
            InboxMessage, LeaseStatus, LeaseToken, async_trait,
        };

        #[async_trait]
        impl IdempotencyKeys for $store {
            async fn begin_key(&self, request: &BeginKey) -> Result<Begun, Error> {
                $call!(self, idempotency.begin_key(request))
            }

            async fn complete_key(&self, request: &CompleteKey) -> Result<LeaseStatus, Error> {
                $call!(self, idempotency.complete_key(request))
            }

            async fn abandon_key(
                &self,
                key: &IdempotencyKey,
                token: LeaseToken,
            ) -> Result<LeaseStatus, Error> {
                $call!(self, idempotency.abandon_key(key, token))
            }

            async fn extend_key(
                &self,
                key: &IdempotencyKey,
                token: LeaseToken,
                by: Duration,
            ) -> Result<LeaseStatus, Error> {
                $call!(self, idempotency.extend_key(key, token, by))
            }

            async fn prune_keys(&self, rows: u32) -> Result<u64, Error> {
                let keys = $call!(self, idempotency.prune_keys(rows))?;
                Ok(keys + $call!(self, idempotency.prune_inbox(rows))?)
            }
        }
    };
}
pub(crate) use idempotency;
