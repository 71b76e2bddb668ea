//! The calls of a relay.

use std::time::Duration;

use outbox_core::sql::{releases, sqlite};
use outbox_core::{
    Claim, ClaimRequest, Error, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore, Settlement,
    async_trait,
};

use super::SqliteStore;
use super::calls::call;

#[async_trait]
impl OutboxStore for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let mut session = self.connection("claim").await?;
        sqlite::claim(&mut session, &self.sql, &*self.clock, &self.turn, request).await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        let mut session = self.connection("settle").await?;
        sqlite::settle(&mut session, &self.sql, &*self.clock, self.retention, batch).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        let mut session = self.connection("extend").await?;
        sqlite::extend(&mut session, &self.sql, &*self.clock, leases, by).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.settle(&releases(leases)).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        let mut session = self.connection("release_claim").await?;
        sqlite::release_claim(&mut session, &self.sql, &*self.clock, token).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        call!(self, destinations.hold(destination, &hold))
    }
}
