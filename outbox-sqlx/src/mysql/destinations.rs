//! Holds, policies and blocked keys.

use outbox_core::Hold;

use super::MySqlStore;
use super::calls::call;
use crate::retry::retried;

crate::destinations::destinations!(MySqlStore, call);

impl MySqlStore {
    async fn set_policy(&self, destination: &str, policy: DeadHeadPolicy) -> Result<(), Error> {
        retried!(async {
            let mut tx = self.begin("set policy").await?;
            let sql = &self.sql.destinations;
            let set = sql.set_policy(&mut tx, None, destination, policy).await;
            tx.end(set).await
        })
    }

    pub(super) async fn hold_once(&self, destination: &str, hold: &Hold) -> Result<(), Error> {
        let mut session = self.connection("hold").await?;
        let sql = &self.sql.destinations;
        sql.hold(&mut session, None, destination, hold).await
    }
}
