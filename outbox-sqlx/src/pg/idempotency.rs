//! Idempotency keys and inbox ids.

use sqlx::PgConnection;

use super::PgStore;
use super::calls::call;

crate::idempotency::idempotency!(PgStore, call);

/// Through a `&mut PgConnection`; a `&mut Transaction` and a `&mut PoolConnection` become one by
/// themselves.
#[async_trait]
impl Inbox<PgConnection> for PgStore {
    async fn accept(
        &self,
        conn: &mut PgConnection,
        message: &InboxMessage,
    ) -> Result<Accepted, Error> {
        let mut session = self.calls_on(conn, "accept");
        let sql = &self.sql.idempotency;
        sql.accept(&mut session, None, message).await
    }
}
