//! Enqueues in the caller's transaction.

use outbox_core::sql::sqlite;
use outbox_core::{Enqueue, Enqueued, Error, NewEvent, async_trait};
use sqlx::sqlite::SqliteConnection;

use super::SqliteStore;
use super::session::Connection;

/// Through a `&mut SqliteConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Enqueue<SqliteConnection> for SqliteStore {
    async fn enqueue(
        &self,
        conn: &mut SqliteConnection,
        event: NewEvent,
    ) -> Result<Enqueued, Error> {
        let mut answers = self.enqueue_all(conn, vec![event]).await?;
        Ok(answers.remove(0))
    }

    async fn enqueue_all(
        &self,
        conn: &mut SqliteConnection,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.limits.check_all(&events)?;
        let mut session = Connection::new(conn, "enqueue");
        sqlite::enqueue(&mut session, &self.sql, &*self.clock, &events).await
    }
}
