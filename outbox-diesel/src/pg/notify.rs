//! Notifying, by call or by trigger.

use diesel_async::SimpleAsyncConnection;
use outbox_core::Error;
use outbox_core::sql::Sql;

use super::error::classify;
use super::{PgStore, execute, retried};

impl PgStore {
    /// Wakes the relays that listen ([`PgWake`](crate::PgWake)), in every process: one statement on a pooled
    /// connection, for producers to call after their commit. Where it fails nothing is lost: relays
    /// poll.
    ///
    /// Inside the producer's transaction it would make the commit take a lock that the whole server
    /// shares; so would the trigger.
    ///
    /// # Errors
    ///
    /// As [`OutboxStore`](outbox_core::OutboxStore).
    pub async fn notify(&self) -> Result<(), Error> {
        let mut conn = self.connection().await?;
        let sql = &self.sql.notify.notify;
        execute(&mut conn, "notify", sql, Vec::new())
            .await
            .map(drop)
    }

    /// Makes every statement that inserts events notify, as part of its transaction: no producer
    /// can forget it, and no other change than an insert does it. It may be called again, and by
    /// many processes at once. To add it with another tool, see
    /// [`NotifySql`](outbox_core::sql::pg::NotifySql).
    ///
    /// The cost: a commit that notifies takes a lock that the whole server shares and keeps it until
    /// it is durable, so that such commits queue up behind each other, in all databases of the
    /// server. Producers that are few and want no call of their own can afford it.
    ///
    /// # Errors
    ///
    /// As [`migrate`](Self::migrate), which must have been called.
    ///
    /// # Cancel safety
    ///
    /// A dropped call has added it or not.
    pub async fn enable_notify_trigger(&self) -> Result<(), Error> {
        let sql = &self.sql.notify.enable_trigger;
        retried!(self.script("enable_notify_trigger", sql))
    }

    /// Removes the trigger; nothing happens where there is none.
    ///
    /// # Errors
    ///
    /// As [`migrate`](Self::migrate).
    ///
    /// # Cancel safety
    ///
    /// A dropped call has removed it or not.
    pub async fn disable_notify_trigger(&self) -> Result<(), Error> {
        let sql = &self.sql.notify.disable_trigger;
        retried!(self.script("disable_notify_trigger", sql))
    }

    async fn script(&self, operation: &'static str, sql: &Sql) -> Result<(), Error> {
        let mut conn = self.connection().await?;
        let done = conn.batch_execute(sql).await;
        done.map_err(|error| classify(operation, error))
    }
}
