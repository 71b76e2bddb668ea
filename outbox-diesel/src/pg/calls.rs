//! How calls are made that are written in the core.

use diesel_async::AsyncPgConnection;
use outbox_core::Error;
use outbox_core::sql::StoreClock;

use super::PgStore;
use crate::retry::retried;
use crate::run::Asynchronous;
use crate::session::{Call, Connection};

impl PgStore {
    /// Makes a call of autocommit statements; again where another transaction was in the way.
    pub(super) async fn on_pool<A: Send + Sync, T>(
        &self,
        operation: &'static str,
        argument: A,
        call: Call<Self, AsyncPgConnection, A, T>,
    ) -> Result<T, Error> {
        retried!(async {
            let mut conn = self.connection().await?;
            let mut session = Connection::new(Asynchronous(&mut **conn), operation);
            call(self, &mut session, &argument).await
        })
    }

    /// The statements read the server's clock.
    pub(super) const fn store_clock(&self) -> StoreClock<'_> {
        None
    }

    /// After a hold or a policy was set.
    pub(super) fn destinations_changed(&self) {
        self.scan().destinations_changed();
    }
}

/// Makes a call of autocommit statements on a pooled connection; again where another transaction was
/// in the way.
macro_rules! call {
    ($store:ident, $operation:ident($($argument:expr),*)) => {
        crate::retry::retried!(async {
            let mut conn = $store.connection().await?;
            let conn = crate::run::Asynchronous(&mut **conn);
            let mut session = crate::session::Connection::new(conn, stringify!($operation));
            outbox_core::sql::pg::$operation(&mut session, &$store.sql, $($argument),*).await
        })
    };
}
pub(super) use call;
