//! Statistics and pruning.

use outbox_core::sql::pruned;
use outbox_core::{Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::PgStore;
use super::calls::call;

#[async_trait]
impl Maintenance for PgStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        call!(self, stats(count_limit))
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        pruned(prune, |table, age| async move {
            call!(self, prune(table, age, prune.rows))
        })
        .await
    }
}
