//! diesel-async's `bb8`.

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
