//! Ending, extending and giving back leases.

use std::time::Duration;

use outbox_core::sql::mysql;
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Settlement};

use super::MySqlStore;

impl MySqlStore {
    pub(super) async fn settle_once(
        &self,
        batch: &[Settlement],
    ) -> Result<Vec<LeaseStatus>, Error> {
        let mut tx = self.begin("settle").await?;
        let answers = mysql::settle(&mut tx, &self.sql, self.retention, batch).await;
        tx.end(answers).await
    }

    pub(super) async fn extend_once(
        &self,
        leases: &[Lease],
        by: Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        let mut tx = self.begin("extend").await?;
        let answers = mysql::extend(&mut tx, &self.sql, leases, by).await;
        tx.end(answers).await
    }

    pub(super) async fn release_claim_once(&self, token: LeaseToken) -> Result<u64, Error> {
        let mut tx = self.begin("release_claim").await?;
        let released = mysql::release_claim(&mut tx, &self.sql, token).await;
        tx.end(released).await
    }
}
