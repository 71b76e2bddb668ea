//! Idempotency keys and inbox ids.

use sqlx::sqlite::SqliteConnection;

use super::SqliteStore;
use super::calls::call;
use super::session::Connection;

crate::idempotency::idempotency!(SqliteStore, call);

/// Through a `&mut SqliteConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves. Begin the transaction with [`SqliteStore::begin_immediate`].
#[async_trait]
impl Inbox<SqliteConnection> for SqliteStore {
    async fn accept(
        &self,
        conn: &mut SqliteConnection,
        message: &InboxMessage,
    ) -> Result<Accepted, Error> {
        let mut session = Connection::new(conn, "accept");
        let (sql, clock) = (&self.sql.idempotency, Some(&*self.clock));
        sql.accept(&mut session, clock, message).await
    }
}
