//! Making a call again where another transaction was in the way.

/// How often a call that met another transaction is made in all.
pub(crate) const TRIES: u32 = 4;

/// Makes a call that changes all or nothing again where another transaction was in the way.
macro_rules! retried {
    ($call:expr) => {{
        let mut tries = $crate::retry::TRIES;
        loop {
            tries -= 1;
            match $call.await {
                Err(error) if tries > 0 && error.kind() == outbox_core::ErrorKind::Conflict => {}
                answer => break answer,
            }
        }
    }};
}
pub(crate) use retried;
