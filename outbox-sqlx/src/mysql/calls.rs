//! How calls of autocommit statements are made.

/// Makes a call on a pooled connection; again where another transaction was in the way.
macro_rules! call {
    ($store:ident, $group:ident.$operation:ident($($argument:expr),*)) => {
        crate::retry::retried!(async {
            let mut session = $store.connection(stringify!($operation)).await?;
            let sql = &$store.sql.$group;
            sql.$operation(&mut session, None, $($argument),*).await
        })
    };
}
pub(super) use call;
