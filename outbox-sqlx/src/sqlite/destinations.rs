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
        let mut session = self.connection("set policy").await?;
        sqlite::set_policy(&mut session, &self.sql, destination, policy).await
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        let mut session = self.connection("list destinations").await?;
        sqlite::destinations(&mut session, &self.sql, &*self.clock, page).await
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        let mut session = self.connection("list blocked keys").await?;
        sqlite::blocked_keys(&mut session, &self.sql, page).await
    }
}
