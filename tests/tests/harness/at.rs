//! Stores of both adapters, with their tables, on the database at a URL.

#[path = "on.rs"]
mod on;

use on::On;
use outbox_core::Retention;

/// A store that is opened by a URL.
pub(crate) trait At: Sized {
    /// A store with a pool of its own, of up to so many connections.
    fn at(url: &str, connections: u32, retention: Retention) -> impl Future<Output = Self> + Send;
}

macro_rules! at {
    ($($store:ty)*) => {$(
        impl At for $store {
            async fn at(url: &str, connections: u32, retention: Retention) -> Self {
                let store = Self::on(url, connections).await.retention(retention);
                store.migrate().await.expect("migrated");
                store
            }
        }
    )*};
}
at! {
    outbox_sqlx::PgStore outbox_sqlx::MySqlStore
    outbox_diesel::PgStore outbox_diesel::MySqlStore
}
