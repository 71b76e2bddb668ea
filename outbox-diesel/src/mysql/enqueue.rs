//! Enqueues in the caller's transaction.

use diesel::mysql::Mysql;
use outbox_core::sql::mysql;

use super::MySqlStore;
use crate::session::Connection;

crate::producers::producers! {
    /// Through plain connections (`MysqlConnection`, say). Nothing here needs libmysqlclient.
    ///
    /// ```no_run
    /// # fn example<C: diesel::connection::LoadConnection<Backend = diesel::mysql::Mysql>>(
    /// #     conn: &mut C,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use outbox_core::NewEvent;
    /// use outbox_diesel::MySqlStore;
    ///
    /// let outbox = MySqlStore::enqueue_only();
    /// conn.transaction(|conn| {
    ///     outbox.enqueue_sync(conn, &NewEvent::bytes("T", "x").to("https://ci.example/hooks"))?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })
    /// # }
    /// ```
    MySqlStore, Mysql
}

impl MySqlStore {
    async fn enqueue_on<C: Runs<Backend = Mysql>>(
        &self,
        conn: C,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error> {
        self.limits.check_all(events)?;
        let mut session = Connection::new(conn, "enqueue");
        mysql::enqueue(&mut session, &self.sql, events).await
    }
}
