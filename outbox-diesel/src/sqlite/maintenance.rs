//! Stats and prunes.

use outbox_core::sql::sqlite;
use outbox_core::{Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::SqliteStore;

#[async_trait]
impl Maintenance for SqliteStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        self.on_pool("stats", count_limit, |store, session, limit| {
            Box::pin(sqlite::stats(session, &store.sql, &*store.clock, *limit))
        })
        .await
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        self.on_pool("prune", prune.clone(), |store, session, prune| {
            Box::pin(sqlite::prune(session, &store.sql, &*store.clock, prune))
        })
        .await
    }
}
