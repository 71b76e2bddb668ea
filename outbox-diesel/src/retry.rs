//! Making a call again where another transaction was in the way.

/// [`retried`](outbox_core::sql::retried) of a future that is made anew each time.
macro_rules! retried {
    ($call:expr) => {
        outbox_core::sql::retried(|| $call).await
    };
}
pub(crate) use retried;
