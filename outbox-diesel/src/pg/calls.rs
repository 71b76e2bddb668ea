//! How calls are made that are written in the core.

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
