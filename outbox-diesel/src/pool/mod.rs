//! Where a store gets its connections from.

#[cfg(feature = "bb8")]
mod bb8;
#[cfg(feature = "deadpool")]
mod deadpool;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod shared;

use std::ops::DerefMut;

use async_trait::async_trait;
use outbox_core::Error;

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) use self::shared::Pool;

/// A connection on loan; it goes back when it is dropped.
pub type Loan<C> = Box<dyn DerefMut<Target = C> + Send>;

/// A pool of connections of type `C`.
///
/// Ready-made for diesel-async's `deadpool` and `bb8` pools behind the features of those names.
///
/// # Contract
///
/// A connection on which a transaction is open is not handed out again. (diesel-async's pools
/// check that.)
///
/// # Errors
///
/// [`Unavailable`](outbox_core::ErrorKind::Unavailable) where no connection can be had now.
///
/// # Cancel safety
///
/// Dropping the future takes no connection out of the pool.
#[async_trait]
pub trait Connections<C>: Send + Sync + 'static {
    /// A connection that nobody else uses meanwhile.
    async fn connection(&self) -> Result<Loan<C>, Error>;
}

#[cfg(any(feature = "deadpool", feature = "bb8"))]
fn no_connection(cause: diesel_async::pooled_connection::PoolError) -> Error {
    use diesel::ConnectionError;
    use diesel_async::pooled_connection::PoolError;
    use outbox_core::ErrorKind;

    if let PoolError::ConnectionError(
        ConnectionError::InvalidConnectionUrl(_) | ConnectionError::InvalidCString(_),
    ) = &cause
    {
        return Error::invalid_config("pool", "has a database URL that can't be read")
            .with_source(cause);
    }
    Error::new(ErrorKind::Unavailable, "the database can't be reached").with_source(cause)
}
