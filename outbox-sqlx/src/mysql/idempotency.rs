//! Idempotency keys and inbox ids.

use sqlx::mysql::MySqlConnection;

use super::MySqlStore;
use super::calls::call;
use super::session::Connection;

crate::idempotency::idempotency!(MySqlStore, call);

/// Through a `&mut MySqlConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Inbox<MySqlConnection> for MySqlStore {
    async fn accept(
        &self,
        conn: &mut MySqlConnection,
        message: &InboxMessage,
    ) -> Result<Accepted, Error> {
        let mut session = Connection::new(conn, "accept");
        let sql = &self.sql.idempotency;
        sql.accept(&mut session, None, message).await
    }
}
