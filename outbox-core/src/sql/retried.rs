//! Making a call again where another transaction was in the way.

use crate::{Error, ErrorKind};

/// How often a call that met another transaction is made in all.
const TRIES: u32 = 4;

/// Makes a call that changes all or nothing; again where another transaction was in the way
/// ([`Conflict`](ErrorKind::Conflict)), four times in all.
///
/// # Errors
///
/// Those of the last call.
pub async fn retried<T, F>(mut call: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            answer => return answer,
        }
    }
    call().await
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    fn made(kind: ErrorKind, failures: u32) -> (Result<(), ErrorKind>, u32) {
        let mut calls = 0;
        let answer = block_on(retried(|| {
            calls += 1;
            let failed = calls <= failures;
            async move {
                if failed {
                    return Err(Error::new(kind, "in the way"));
                }
                Ok(())
            }
        }));
        (answer.map_err(|error| error.kind()), calls)
    }

    #[test]
    fn a_call_is_made_again_after_a_conflict() {
        assert_eq!(made(ErrorKind::Conflict, 0), (Ok(()), 1));
        assert_eq!(made(ErrorKind::Conflict, 3), (Ok(()), 4));
    }

    #[test]
    fn a_call_ends_after_four_conflicts() {
        let conflict = Err(ErrorKind::Conflict);
        assert_eq!(made(ErrorKind::Conflict, 9), (conflict, 4));
    }

    #[test]
    fn another_error_ends_a_call() {
        let lost = Err(ErrorKind::Unavailable);
        assert_eq!(made(ErrorKind::Unavailable, 9), (lost, 1));
    }
}
