//! Dead letters.

use outbox_core::{DeadLetter, DeadLetterFilter, DeadLetters, Error, Page, Replay, async_trait};

use super::PgStore;
use super::calls::call;

#[async_trait]
impl DeadLetters for PgStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        call!(self, list_dead(filter, page))
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let mut letters = self
            .list(&DeadLetterFilter::seq(seq), &Page::default())
            .await?;
        Ok(letters.pop())
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        let count = call!(self, replay(replay))?;
        self.scan().settled(true);
        Ok(count)
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        let count = call!(self, discard(filter, rows, reason))?;
        self.scan().settled(true);
        Ok(count)
    }
}
