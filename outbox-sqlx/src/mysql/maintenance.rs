//! Stats and prunes.

use std::time::Duration;

use outbox_core::sql::{Pruning, mysql, pruned};
use outbox_core::{Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::MySqlStore;
use crate::retry::retried;

#[async_trait]
impl Maintenance for MySqlStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        let mut session = self.connection("stats").await?;
        mysql::stats(&mut session, &self.sql, count_limit).await
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        pruned(prune, |table, age| async move {
            retried!(self.prune_once(table, age, prune.rows))
        })
        .await
    }
}

impl MySqlStore {
    async fn prune_once(&self, table: Pruning, age: Duration, rows: u32) -> Result<u64, Error> {
        let mut tx = self.begin("prune").await?;
        let done = mysql::prune(&mut tx, &self.sql, table, age, rows).await;
        tx.end(done).await
    }
}
