//! Enqueues in the caller's transaction.

use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::mysql;
use outbox_core::{Enqueue, Enqueued, Error, NewEvent, async_trait};

use super::MySqlStore;
use crate::run::{Asynchronous, Plain, Runs, blocking};
use crate::session::Connection;

const OPERATION: &str = "enqueue";

/// Through any asynchronous connection to MySQL, pooled ones included.
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Mysql>> Enqueue<C> for MySqlStore {
    async fn enqueue(&self, conn: &mut C, event: NewEvent) -> Result<Enqueued, Error> {
        let mut answers = self.enqueue_all(conn, vec![event]).await?;
        Ok(answers.remove(0))
    }

    async fn enqueue_all(
        &self,
        conn: &mut C,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Enqueued>, Error> {
        self.enqueue_on(Asynchronous(conn), &events).await
    }
}

/// Through plain connections (`MysqlConnection`, say). Nothing here needs libmysqlclient.
impl MySqlStore {
    /// Stores one event, as [`Enqueue::enqueue`] does. Blocks the thread.
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
    ///
    /// # Errors
    ///
    /// As [`Enqueue`].
    pub fn enqueue_sync<C>(&self, conn: &mut C, event: &NewEvent) -> Result<Enqueued, Error>
    where
        C: LoadConnection<Backend = Mysql>,
    {
        let mut answers = self.enqueue_all_sync(conn, std::slice::from_ref(event))?;
        Ok(answers.remove(0))
    }

    /// Stores many events, as [`Enqueue::enqueue_all`] does. Blocks the thread.
    ///
    /// # Errors
    ///
    /// As [`Enqueue`].
    pub fn enqueue_all_sync<C>(
        &self,
        conn: &mut C,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error>
    where
        C: LoadConnection<Backend = Mysql>,
    {
        blocking(self.enqueue_on(Plain(conn), events))
    }

    async fn enqueue_on<C: Runs<Backend = Mysql>>(
        &self,
        conn: C,
        events: &[NewEvent],
    ) -> Result<Vec<Enqueued>, Error> {
        self.limits.check_all(events)?;
        let mut session = Connection::new(conn, OPERATION);
        mysql::enqueue(&mut session, &self.sql, events).await
    }
}
