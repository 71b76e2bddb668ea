//! How a store's calls are made: on a pooled connection, in a task of their own.

use diesel_async::{AnsiTransactionManager, AsyncMysqlConnection, TransactionManager};
use outbox_core::sql::StoreClock;
use outbox_core::sql::mysql::BEGIN;
use outbox_core::{Error, ErrorKind};

use super::MySqlStore;
use crate::detach::detached;
use crate::retry::retried;
use crate::run::Asynchronous;
use crate::session::{self, Connection};

/// A pooled connection.
pub(super) type Pooled<'c> = Connection<Asynchronous<'c, AsyncMysqlConnection>>;

type Call<A, T> = session::Call<MySqlStore, AsyncMysqlConnection, A, T>;

impl MySqlStore {
    /// Makes a call of autocommit statements; again where another transaction was in the way.
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
        self.made(operation, argument, call, false).await
    }

    /// Makes a call in a transaction of its own; again where another one was in the way.
    pub(super) async fn in_transaction<A, T>(
        &self,
        operation: &'static str,
        argument: A,
        call: Call<A, T>,
    ) -> Result<T, Error>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.made(operation, argument, call, true).await
    }

    async fn made<A, T>(
        &self,
        operation: &'static str,
        argument: A,
        call: Call<A, T>,
        in_transaction: bool,
    ) -> Result<T, Error>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let store = self.clone();
        detached(async move {
            retried!(async {
                let mut conn = store.pool.get().await?;
                let mut session = Connection::new(Asynchronous(&mut **conn), operation);
                if in_transaction {
                    session.begin().await?;
                }
                let answer = call(&store, &mut session, &argument).await;
                if in_transaction {
                    session.end(answer).await
                } else {
                    session.checked(answer)
                }
            })
        })
        .await
    }

    /// The statements read the server's clock.
    pub(super) const fn store_clock(&self) -> StoreClock<'_> {
        None
    }

    /// Claims read holds and policies each time.
    pub(super) const fn destinations_changed(&self) {}
}

impl Pooled<'_> {
    async fn begin(&mut self) -> Result<(), Error> {
        let conn = &mut *self.connection().0;
        let begun = AnsiTransactionManager::begin_transaction_sql(conn, BEGIN).await;
        let begun = self.answer(begun).await;
        self.checked(begun)
    }

    /// Commits where `outcome` is good, else rolls back.
    async fn end<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        let conn = &mut *self.connection().0;
        let ended = match outcome {
            Ok(_) => AnsiTransactionManager::commit_transaction(conn).await,
            Err(_) => AnsiTransactionManager::rollback_transaction(conn).await,
        };
        let ended = self.answer(ended).await;
        self.checked(outcome.and_then(|answer| ended.map(|()| answer)))
    }

    /// Lets no pool lend this connection again where it seems lost.
    fn checked<T>(&mut self, answer: Result<T, Error>) -> Result<T, Error> {
        answer.inspect_err(|error| {
            if error.kind() == ErrorKind::Unavailable {
                let conn = &mut *self.connection().0;
                AnsiTransactionManager::transaction_manager_status_mut(conn).set_in_error();
            }
        })
    }
}
