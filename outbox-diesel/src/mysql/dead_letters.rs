//! Dead letters.

use outbox_core::sql::mysql;
use outbox_core::{DeadLetter, DeadLetterFilter, DeadLetters, Error, Page, Replay, async_trait};

use super::MySqlStore;

#[async_trait]
impl DeadLetters for MySqlStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let asked = (filter.clone(), page.clone());
        self.on_pool("list dead letters", asked, |store, session, asked| {
            Box::pin(mysql::list_dead(session, &store.sql, &asked.0, &asked.1))
        })
        .await
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let mut found = self
            .list(&DeadLetterFilter::seq(seq), &Page::default())
            .await?;
        Ok(found.pop())
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        self.in_transaction("replay", replay.clone(), |store, tx, replay| {
            Box::pin(mysql::replay(tx, &store.sql, replay))
        })
        .await
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        let asked = (filter.clone(), rows, reason.to_owned());
        self.in_transaction("discard", asked, |store, tx, (filter, rows, reason)| {
            Box::pin(mysql::discard(tx, &store.sql, filter, *rows, reason))
        })
        .await
    }
}
