//! The calls of a relay.

use std::time::Duration;

use outbox_core::sql::{releases, sqlite};
use outbox_core::{
    Claim, ClaimRequest, Error, Hold, Lease, LeaseStatus, LeaseToken, OutboxStore, Settlement,
    async_trait,
};

use super::SqliteStore;

#[async_trait]
impl OutboxStore for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        self.on_pool("claim", request.clone(), |store, session, request| {
            let (sql, clock, turn) = (&store.sql, &*store.clock, &store.turn);
            Box::pin(sqlite::claim(session, sql, clock, turn, request))
        })
        .await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        self.settle_all(batch.to_vec()).await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        let asked = (leases.to_vec(), by);
        self.on_pool("extend", asked, |store, session, (leases, by)| {
            let (sql, clock) = (&store.sql, &*store.clock);
            Box::pin(sqlite::extend(session, sql, clock, leases, *by))
        })
        .await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.settle_all(releases(leases)).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.on_pool("release_claim", token, |store, session, token| {
            let (sql, clock) = (&store.sql, &*store.clock);
            Box::pin(sqlite::release_claim(session, sql, clock, *token))
        })
        .await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        self.hold_one(destination, hold).await
    }
}

impl SqliteStore {
    async fn settle_all(&self, batch: Vec<Settlement>) -> Result<Vec<LeaseStatus>, Error> {
        self.on_pool("settle", batch, |store, session, batch| {
            let (sql, clock) = (&store.sql, &*store.clock);
            Box::pin(sqlite::settle(session, sql, clock, store.retention, batch))
        })
        .await
    }
}
