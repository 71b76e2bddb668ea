//! Stats and prunes.

use outbox_core::sql::sqlite;
use outbox_core::{Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::SqliteStore;

#[async_trait]
impl Maintenance for SqliteStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        let mut session = self.connection("stats").await?;
        sqlite::stats(&mut session, &self.sql, &*self.clock, count_limit).await
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        let mut session = self.connection("prune").await?;
        sqlite::prune(&mut session, &self.sql, &*self.clock, prune).await
    }
}
