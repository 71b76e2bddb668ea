//! Dead letters.

use outbox_core::sql::mysql;
use outbox_core::{DeadLetter, DeadLetterFilter, DeadLetters, Error, Page, Replay, async_trait};

use super::MySqlStore;
use crate::retry::retried;

#[async_trait]
impl DeadLetters for MySqlStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let mut session = self.connection("list dead letters").await?;
        mysql::list_dead(&mut session, &self.sql, filter, page).await
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let mut found = self
            .list(&DeadLetterFilter::seq(seq), &Page::default())
            .await?;
        Ok(found.pop())
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        retried!(self.replay_once(replay))
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        retried!(self.discard_once(filter, rows, reason))
    }
}

impl MySqlStore {
    async fn replay_once(&self, replay: &Replay) -> Result<u64, Error> {
        let mut tx = self.begin("replay").await?;
        let replayed = mysql::replay(&mut tx, &self.sql, replay).await;
        tx.end(replayed).await
    }

    async fn discard_once(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        let mut tx = self.begin("discard").await?;
        let discarded = mysql::discard(&mut tx, &self.sql, filter, rows, reason).await;
        tx.end(discarded).await
    }
}
