//! diesel-async's `deadpool`.

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
