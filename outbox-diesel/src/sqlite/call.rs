//! How a store's calls are made: on a pooled connection, in a task of their own.

use diesel::SqliteConnection;
use futures::future::BoxFuture;
use outbox_core::Error;
use outbox_core::sql::StoreClock;

use super::SqliteStore;
use super::error::classify;
use crate::detach::detached;
use crate::run::{Plain, blocking};
use crate::session::Connection;

/// A pooled connection, on a thread that may block.
pub(super) type Pooled<'c> = Connection<Plain<'c, SqliteConnection>>;

/// What a call makes of its argument on a connection.
pub(super) type Call<A, T> =
    for<'a> fn(&'a SqliteStore, &'a mut Pooled<'_>, &'a A) -> BoxFuture<'a, Result<T, Error>>;

impl SqliteStore {
    /// Makes a call.
    pub(super) async fn on_pool<A, T>(
        &self,
        operation: &'static str,
        argument: A,
        call: Call<A, T>,
    ) -> Result<T, Error>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let store = self.clone();
        detached(async move {
            let mut conn = store.pool.get().await?;
            let answer = conn.spawn_blocking(move |conn| {
                let mut session = Connection::new(Plain(conn), operation);
                Ok(blocking(call(&store, &mut session, &argument)))
            });
            answer
                .await
                .unwrap_or_else(|error| Err(classify(operation, error)))
        })
        .await
    }

    /// The statements bind the time.
    pub(super) fn store_clock(&self) -> StoreClock<'_> {
        Some(&*self.clock)
    }

    /// Claims read holds and policies each time.
    pub(super) const fn destinations_changed(&self) {}
}
