//! The panic boundary, and what a caught panic or an error said, in one line.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;

/// Runs code that is not ours; `Err` is what it panicked with.
pub(crate) fn contained<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| panic_message(&*payload))
}

/// The same for a future. The call that makes it belongs inside.
pub(crate) async fn contained_future<T>(code: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(code)
        .catch_unwind()
        .await
        .map_err(|payload| panic_message(&*payload))
}

/// The panic's message, where it has one.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "panicked with no message".to_owned(), crate::error_text)
}

/// An error and its causes in one line.
pub(crate) fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
