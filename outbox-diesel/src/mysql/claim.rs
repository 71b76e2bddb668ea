//! The calls of a relay.

use std::time::Duration;

use outbox_core::sql::{mysql, releases};
use outbox_core::{
    Claim, ClaimRequest, Error, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore, Settlement,
    async_trait,
};

use super::MySqlStore;

#[async_trait]
impl OutboxStore for MySqlStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        self.in_transaction("claim", request.clone(), |store, tx, request| {
            Box::pin(mysql::claim(tx, &store.sql, &store.turns, request))
        })
        .await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.settle_all(batch.to_vec()).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        self.extend_all(leases.to_vec(), by).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.settle_all(releases(leases)).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.release_all(token).await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.hold_one(destination, hold).await
    }
}
