//! Destinations: holds, policies, blocked keys.

use outbox_core::sql::mysql;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, Hold, async_trait,
};

use super::MySqlStore;
use crate::retry::retried;

impl MySqlStore {
    pub(super) async fn hold_once(&self, destination: &str, hold: &Hold) -> Result<(), Error> {
        let mut session = self.connection("hold").await?;
        mysql::hold(&mut session, &self.sql, destination, hold).await
    }

    async fn set_policy_once(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let mut tx = self.begin("set policy").await?;
        let set = mysql::set_policy(&mut tx, &self.sql, destination, policy).await;
        tx.end(set).await
    }
}

#[async_trait]
impl Destinations for MySqlStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        retried!(self.set_policy_once(destination, policy))
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        let mut session = self.connection("list destinations").await?;
        mysql::destinations(&mut session, &self.sql, page).await
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        let mut session = self.connection("list blocked keys").await?;
        mysql::blocked_keys(&mut session, &self.sql, page).await
    }
}
