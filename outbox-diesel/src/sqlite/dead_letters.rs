//! Dead letters.

use outbox_core::sql::sqlite;
use outbox_core::{DeadLetter, DeadLetterFilter, DeadLetters, Error, Page, Replay, async_trait};

use super::SqliteStore;

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn list(&self, filter: &DeadLetterFilter, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        let asked = (filter.clone(), page.clone());
        self.on_pool(
            "list dead letters",
            asked,
            |store, session, (filter, page)| {
                let (sql, clock) = (&store.sql, &*store.clock);
                Box::pin(sqlite::list_dead(session, sql, clock, filter, page))
            },
        )
        .await
    }

    async fn get(&self, seq: i64) -> Result<Option<DeadLetter>, Error> {
        self.on_pool("get dead letter", seq, |store, session, seq| {
            Box::pin(sqlite::get_dead(session, &store.sql, *seq))
        })
        .await
    }

    async fn replay(&self, replay: &Replay) -> Result<u64, Error> {
        self.on_pool("replay", replay.clone(), |store, session, replay| {
            Box::pin(sqlite::replay(session, &store.sql, &*store.clock, replay))
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
        self.on_pool(
            "discard",
            asked,
            |store, session, (filter, rows, reason)| {
                let (sql, clock) = (&store.sql, &*store.clock);
                Box::pin(sqlite::discard(session, sql, clock, filter, *rows, reason))
            },
        )
        .await
    }
}
