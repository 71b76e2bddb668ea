//! The panic boundary.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;

/// Runs code that is not ours; `Err` is what it panicked with.
pub(super) fn contained<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| message(&*payload))
}

/// The same for a future. The call that makes it belongs inside.
pub(super) async fn contained_future<T>(code: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(code)
        .catch_unwind()
        .await
        .map_err(|payload| message(&*payload))
}

fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
