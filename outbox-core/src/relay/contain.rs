//! The panic boundary.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;

use crate::faults::panic_message;

/// Runs code that is not ours; `Err` is what it panicked with.
pub(super) fn contained<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| panic_message(&*payload))
}

/// The same for a future. The call that makes it belongs inside.
pub(super) async fn contained_future<T>(code: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(code)
        .catch_unwind()
        .await
        .map_err(|payload| panic_message(&*payload))
}
