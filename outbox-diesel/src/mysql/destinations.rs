//! Destinations: holds, policies, blocked keys.

use outbox_core::sql::mysql;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, Hold, async_trait,
};

use super::MySqlStore;

impl MySqlStore {
    pub(super) async fn hold_one(&self, destination: String, hold: Hold) -> Result<(), Error> {
        let asked = (destination, hold);
        self.on_pool("hold", asked, |store, session, (destination, hold)| {
            Box::pin(mysql::hold(session, &store.sql, destination, hold))
        })
        .await
    }
}

#[async_trait]
impl Destinations for MySqlStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let asked = (destination.to_owned(), policy);
        self.in_transaction("set policy", asked, |store, tx, (destination, policy)| {
            Box::pin(mysql::set_policy(tx, &store.sql, destination, *policy))
        })
        .await
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        let page = page.clone();
        self.on_pool("list destinations", page, |store, session, page| {
            Box::pin(mysql::destinations(session, &store.sql, page))
        })
        .await
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        let page = page.clone();
        self.on_pool("list blocked keys", page, |store, session, page| {
            Box::pin(mysql::blocked_keys(session, &store.sql, page))
        })
        .await
    }
}
