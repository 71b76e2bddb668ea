//! Walking an error's causes.

use std::error::Error as StdError;
use std::io;

/// The error and its causes, outermost first. `io::Error` hides the error it was made of from
/// `source()`; this finds it too.
pub(super) fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>().map(io::Error::get_ref) {
        Some(Some(inner)) => Some(inner as &(dyn StdError + 'static)),
        _ => error.source(),
    }
}

/// The first cause of this type.
pub(super) fn find<'a, T: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a T> {
    chain(error).find_map(|cause| cause.downcast_ref())
}
