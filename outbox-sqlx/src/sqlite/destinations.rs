//! Policies and blocked keys.

use super::SqliteStore;
use super::calls::call;

crate::destinations::destinations!(SqliteStore, call);

impl SqliteStore {
    async fn set_policy(&self, destination: &str, policy: DeadHeadPolicy) -> Result<(), Error> {
        call!(self, destinations.set_policy(destination, policy))
    }
}
