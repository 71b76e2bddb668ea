//! Holds, policies and blocked keys.

use outbox_core::sql::pg;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, Hold, async_trait,
};

use super::PgStore;
use super::calls::call;
use crate::run::Asynchronous;
use crate::session::Connection;

#[async_trait]
impl Destinations for PgStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        call!(self, set_policy(destination, policy))?;
        self.scan().destinations_changed();
        Ok(())
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        call!(self, destinations(page))
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        call!(self, blocked_keys(page))
    }
}

impl PgStore {
    pub(super) async fn hold_once(&self, destination: &str, hold: &Hold) -> Result<(), Error> {
        let mut conn = self.connection().await?;
        let mut session = Connection::new(Asynchronous(&mut **conn), "hold");
        let held = pg::hold(&mut session, &self.sql, destination, hold).await;
        self.scan().destinations_changed();
        held
    }
}
