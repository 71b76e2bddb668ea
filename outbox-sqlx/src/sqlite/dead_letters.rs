//! Dead letters.

use outbox_core::sql::sqlite;
use outbox_core::{DeadLetter, DeadLetterFilter, DeadLetters, Error, Page, Replay, async_trait};

use super::SqliteStore;

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let mut session = self.connection("list dead letters").await?;
        sqlite::list_dead(&mut session, &self.sql, &*self.clock, filter, page).await
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        let mut session = self.connection("get dead letter").await?;
        sqlite::get_dead(&mut session, &self.sql, seq).await
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        let mut session = self.connection("replay").await?;
        sqlite::replay(&mut session, &self.sql, &*self.clock, replay).await
    }

    async fn discard(
        &self,
        filter: &DeadLetterFilter,
        rows: u32,
        reason: &str,
    ) -> Result<u64, Error> {
        let (mut session, clock) = (self.connection("discard").await?, &*self.clock);
        sqlite::discard(&mut session, &self.sql, clock, filter, rows, reason).await
    }
}
