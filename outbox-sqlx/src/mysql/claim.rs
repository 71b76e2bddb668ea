//! The calls of a relay.

use std::time::Duration;

use outbox_core::sql::{mysql, releases};
use outbox_core::{
    Claim, ClaimRequest, Error, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore, Settlement,
    async_trait,
};

use super::MySqlStore;
use crate::retry::retried;

#[async_trait]
impl OutboxStore for MySqlStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        retried!(self.claim_once(request))
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        retried!(self.settle_once(batch))
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        retried!(self.extend_once(leases, by))
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        let batch = releases(leases);
        retried!(self.settle_once(&batch))
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        retried!(self.release_claim_once(token))
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        retried!(self.hold_once(destination, &hold))
    }
}

impl MySqlStore {
    async fn claim_once(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let mut tx = self.begin("claim").await?;
        let claim = mysql::claim(&mut tx, &self.sql, &self.turns, request).await;
        tx.end(claim).await
    }
}
