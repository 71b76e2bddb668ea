//! Enqueues in the caller's transaction.

use outbox_core::sql::mysql;
use outbox_core::{Enqueue, Enqueued, Error, NewEvent, async_trait};
use sqlx::mysql::MySqlConnection;

use super::MySqlStore;
use super::session::Connection;

/// Through a `&mut MySqlConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Enqueue<MySqlConnection> for MySqlStore {
    async fn enqueue(
        &self,
        conn: &mut MySqlConnection,
        event: NewEvent,
    ) -> Result<Enqueued, Error> {
        let mut answers = self.enqueue_all(conn, vec![event]).await?;
        Ok(answers.remove(0))
    }

    async fn enqueue_all(
        &self,
        conn: &mut MySqlConnection,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.limits.check_all(&events)?;
        let mut session = Connection::new(conn, "enqueue");
        mysql::enqueue(&mut session, &self.sql, &events).await
    }
}
