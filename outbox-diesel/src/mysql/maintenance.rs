//! Stats and prunes.

use outbox_core::sql::{mysql, pruned};
use outbox_core::{Error, Maintenance, Prune, Pruned, Stats, async_trait};

use super::MySqlStore;

#[async_trait]
impl Maintenance for MySqlStore {
    async fn stats(&self, count_limit: u32) -> Result<Stats, Error> {
        self.on_pool("stats", count_limit, |store, session, limit| {
            Box::pin(mysql::stats(session, &store.sql, *limit))
        })
        .await
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        pruned(prune, |table, age| {
            let asked = (table, age, prune.rows);
            self.in_transaction("prune", asked, |store, tx, (table, age, rows)| {
                Box::pin(mysql::prune(tx, &store.sql, *table, *age, *rows))
            })
        })
        .await
    }
}
