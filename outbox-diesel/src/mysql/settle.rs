//! Ending, extending and giving back leases.

use std::time::Duration;

use outbox_core::sql::mysql;
use outbox_core::{Error, Lease, LeaseStatus, LeaseToken, Settlement};

use super::MySqlStore;

impl MySqlStore {
    pub(super) async fn settle_all(
        &self,
        batch: Vec<Settlement>,
    ) -> Result<Vec<LeaseStatus>, Error> {
        self.in_transaction("settle", batch, |store, tx, batch| {
            Box::pin(mysql::settle(tx, &store.sql, store.retention, batch))
        })
        .await
    }

    pub(super) async fn extend_all(
        &self,
        leases: Vec<Lease>,
        by: Duration,
    ) -> Result<Vec<LeaseStatus>, Error> {
        self.in_transaction("extend", (leases, by), |store, tx, (leases, by)| {
            Box::pin(mysql::extend(tx, &store.sql, leases, *by))
        })
        .await
    }

    pub(super) async fn release_all(&self, token: LeaseToken) -> Result<u64, Error> {
        self.in_transaction("release_claim", token, |store, tx, token| {
            Box::pin(mysql::release_claim(tx, &store.sql, *token))
        })
        .await
    }
}
