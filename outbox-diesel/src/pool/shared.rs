//! A pool whose type is forgotten.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use outbox_core::{Error, ErrorKind};

use super::{Connections, Loan};

/// A shared pool whose type is forgotten.
pub(crate) struct Pool<C>(Arc<dyn Connections<C>>);

impl<C: 'static> Pool<C> {
    pub(crate) fn new(pool: impl Connections<C>) -> Self {
        Self(Arc::new(pool))
    }

    /// No pool: every call that needs one fails.
    pub(crate) fn none() -> Self {
        Self(Arc::new(NoPool))
    }

    pub(crate) async fn get(&self) -> Result<Loan<C>, Error> {
        self.0.connection().await
    }
}

struct NoPool;

#[async_trait]
impl<C: 'static> Connections<C> for NoPool {
    async fn connection(&self) -> Result<Loan<C>, Error> {
        let message = "the store was made without a pool, for enqueues alone";
        Err(Error::new(ErrorKind::Unsupported, message))
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
