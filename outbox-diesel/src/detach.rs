//! Work that runs to its end even where its caller stops waiting.

use std::future::Future;

use outbox_core::{Error, ErrorKind};
use tokio::runtime::Handle;

/// Runs `work` as a task of the tokio runtime that diesel-async needs anyway.
///
/// A caller that is dropped leaves the task running: a transaction that is broken off would cost
/// its connection and, until the pool notices, keep its locks.
pub(crate) async fn detached<T, F>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let runtime = Handle::try_current().map_err(|cause| {
        let message = "the call was made outside of a tokio runtime, which diesel-async needs";
        Error::new(ErrorKind::Unsupported, message).with_source(cause)
    })?;
    runtime.spawn(work).await.unwrap_or_else(|cause| {
        let message = "the call was cut short";
        Err(Error::new(ErrorKind::Unavailable, message).with_source(cause))
    })
}
