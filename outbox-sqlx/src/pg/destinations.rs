//! Holds, policies and blocked keys.

use outbox_core::Hold;

use super::PgStore;
use super::calls::call;

crate::destinations::destinations!(PgStore, call);

impl PgStore {
    async fn set_policy(&self, destination: &str, policy: DeadHeadPolicy) -> Result<(), Error> {
        call!(self, destinations.set_policy(destination, policy))?;
        self.scan().destinations_changed();
        Ok(())
    }

    pub(super) async fn hold_once(&self, destination: &str, hold: &Hold) -> Result<(), Error> {
        let (sql, mut session) = (&self.sql.destinations, self.calls("hold"));
        let held = sql.hold(&mut session, None, destination, hold).await;
        self.scan().destinations_changed();
        held
    }
}
