//! Where a store gets its connections from.

use std::fmt;
use std::ops::DerefMut;
use std::sync::Arc;

use async_trait::async_trait;
use outbox_core::Error;

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

/// A shared pool whose type is forgotten.
pub(crate) struct Pool<C>(Arc<dyn Connections<C>>);

impl<C: 'static> Pool<C> {
    pub(crate) fn new(pool: impl Connections<C>) -> Self {
        Self(Arc::new(pool))
    }

    pub(crate) async fn get(&self) -> Result<Loan<C>, Error> {
        self.0.connection().await
    }
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

#[cfg(feature = "deadpool")]
mod deadpool {
    use async_trait::async_trait;
    use deadpool::managed::PoolError;
    use diesel_async::pooled_connection::deadpool::Pool;
    use diesel_async::pooled_connection::{AsyncDieselConnectionManager, PoolError as Cause};
    use outbox_core::{Error, ErrorKind};

    use super::{Connections, Loan};

    #[async_trait]
    impl<C> Connections<C> for Pool<C>
    where
        C: Send + 'static,
        AsyncDieselConnectionManager<C>: deadpool::managed::Manager<Type = C, Error = Cause>,
    {
        async fn connection(&self) -> Result<Loan<C>, Error> {
            match self.get().await {
                Ok(connection) => Ok(Box::new(connection)),
                Err(PoolError::NoRuntimeSpecified) => Err(Error::invalid_config(
                    "pool",
                    "has time-outs but no runtime; set `Runtime::Tokio1` in its builder",
                )),
                Err(PoolError::Backend(cause)) => Err(super::no_connection(cause)),
                Err(cause) => {
                    let message = "the pool has no connection to give";
                    Err(Error::new(ErrorKind::Unavailable, message).with_source(cause))
                }
            }
        }
    }
}

#[cfg(feature = "bb8")]
mod bb8 {
    use async_trait::async_trait;
    use bb8::{ManageConnection, RunError};
    use diesel_async::pooled_connection::bb8::Pool;
    use diesel_async::pooled_connection::{AsyncDieselConnectionManager, PoolError as Cause};
    use outbox_core::{Error, ErrorKind};

    use super::{Connections, Loan};

    #[async_trait]
    impl<C> Connections<C> for Pool<C>
    where
        C: Send + 'static,
        AsyncDieselConnectionManager<C>: ManageConnection<Connection = C, Error = Cause>,
    {
        async fn connection(&self) -> Result<Loan<C>, Error> {
            match self.get_owned().await {
                Ok(connection) => Ok(Box::new(connection)),
                Err(RunError::User(cause)) => Err(super::no_connection(cause)),
                Err(cause @ RunError::TimedOut) => {
                    let message = "the pool has no connection to give";
                    Err(Error::new(ErrorKind::Unavailable, message).with_source(cause))
                }
            }
        }
    }
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
