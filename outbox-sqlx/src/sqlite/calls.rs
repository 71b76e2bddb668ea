//! How calls are made.

/// Makes a call on a pooled connection.
macro_rules! call {
    ($store:ident, $group:ident.$operation:ident($($argument:expr),*)) => {{
        let mut session = $store.connection(stringify!($operation)).await?;
        let (sql, clock) = (&$store.sql.$group, &*$store.clock);
        sql.$operation(&mut session, Some(clock), $($argument),*).await
    }};
}
pub(super) use call;
