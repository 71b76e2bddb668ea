//! Destinations: policies, blocked keys.

use outbox_core::sql::sqlite;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, async_trait,
};

use super::SqliteStore;

#[async_trait]
impl Destinations for SqliteStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let asked = (destination.to_owned(), policy);
        self.on_pool(
            "set policy",
            asked,
            |store, session, (destination, policy)| {
                Box::pin(sqlite::set_policy(
                    session,
                    &store.sql,
                    destination,
                    *policy,
                ))
            },
        )
        .await
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        self.on_pool("list destinations", page.clone(), |store, session, page| {
            Box::pin(sqlite::destinations(
                session,
                &store.sql,
                &*store.clock,
                page,
            ))
        })
        .await
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        self.on_pool("list blocked keys", page.clone(), |store, session, page| {
            Box::pin(sqlite::blocked_keys(session, &store.sql, page))
        })
        .await
    }
}
