//! Enqueues in the caller's transaction.

use diesel::connection::LoadConnection;
use diesel::sqlite::Sqlite;
use diesel_async::AsyncConnectionCore;
use outbox_core::sql::sqlite;
use outbox_core::{Enqueue, Enqueued, Error, NewEvent, async_trait};

use super::SqliteStore;
use crate::run::{Asynchronous, Plain, Runs, blocking};
use crate::session::Connection;

/// Through any asynchronous connection to SQLite, pooled ones included.
#[async_trait]
impl<C: AsyncConnectionCore<Backend = Sqlite>> Enqueue<C> for SqliteStore {
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

/// Through plain connections.
impl SqliteStore {
    /// Stores one event, as [`Enqueue::enqueue`] does. Blocks the thread.
    ///
    /// # Errors
    ///
    /// As [`Enqueue`].
    pub fn enqueue_sync<C>(&self, conn: &mut C, event: &NewEvent) -> Result<Enqueued, Error>
    where
        C: LoadConnection<Backend = Sqlite>,
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
        C: LoadConnection<Backend = Sqlite>,
    {
        blocking(self.enqueue_on(Plain(conn), events))
    }

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
