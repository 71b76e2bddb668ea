//! Enqueues in the caller's transaction.

use diesel::sqlite::Sqlite;
use outbox_core::sql::sqlite;

use super::SqliteStore;
use crate::session::Connection;

crate::producers::producers! {
    /// Through plain connections.
    SqliteStore, Sqlite
}

impl SqliteStore {
    async fn enqueue_on<C: Runs<Backend = Sqlite>>(
        &self,
        conn: C,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error> {
        self.limits.check_all(events)?;
        let mut session = Connection::new(conn, "enqueue");
        sqlite::enqueue(&mut session, &self.sql, &*self.clock, events).await
    }
}
