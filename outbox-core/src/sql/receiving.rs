//! What the statements about idempotency keys, inbox ids and locks found, in the words of the
//! traits.

use std::time::Duration;

use super::named::{Given, Named, StoreClock};
use super::{Cell, Row, Session};
use crate::{Accepted, Begun, Bytes, Error, ErrorKind, Fingerprint, LeaseStatus};

/// A key that is not free, as a look finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by every adapter")]
pub struct KeyRow {
    /// Whether its fingerprint is the request's.
    pub same: bool,
    /// The answer; none while a run is in flight.
    pub answer: Option<Vec<u8>>,
    /// How many µs its lease has left.
    pub left: Option<i64>,
}

impl KeyRow {
    /// From a row of these columns, in any order of kinds.
    pub(super) fn read(mut row: Row) -> Self {
        Self {
            same: row.is(0),
            left: row.maybe(1),
            answer: row.bytes.pop().flatten(),
        }
    }

    /// Why a request with this key does not start.
    #[must_use]
    pub fn begun(self) -> Begun {
        match self.answer {
            _ if !self.same => Begun::Mismatch,
            Some(answer) => Begun::Done {
                answer: Bytes::from(answer),
            },
            None => Begun::Busy {
                retry_after: time_left(self.left),
            },
        }
    }
}

/// A message that was accepted before: its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by every adapter")]
pub struct InboxRow(pub Option<Vec<u8>>);

impl InboxRow {
    /// From a row that ends with the fingerprint.
    pub(super) fn read(mut row: Row) -> Self {
        Self(row.bytes.pop().flatten())
    }
}

/// What a message is whose id was found taken.
///
/// # Errors
///
/// [`Conflict`](ErrorKind::Conflict) where the id is gone again.
pub fn accepted(
    found: Option<InboxRow>,
    fingerprint: Option<Fingerprint>,
) -> Result<Accepted, Error> {
    match (found, fingerprint) {
        (None, _) => {
            let problem = "accept: the message's id was forgotten meanwhile";
            Err(Error::new(ErrorKind::Conflict, problem))
        }
        (Some(InboxRow(Some(one))), Some(other)) if one != other.as_bytes() => {
            Ok(Accepted::Mismatch)
        }
        _ => Ok(Accepted::Duplicate),
    }
}

/// What became of a lease that was not changed: the row's token is another one, or the row or its
/// lease is no more.
#[must_use]
pub fn owner(another: Option<bool>) -> LeaseStatus {
    match another {
        Some(true) => LeaseStatus::Lost,
        _ => LeaseStatus::Unknown,
    }
}

/// Makes a change that only the holder of the token may make: it matches the row of this token. Where
/// there is none, `owner` tells whether another has it.
pub(super) async fn prove<S: Session>(
    change: &Named,
    owner: &Named,
    session: &mut S,
    clock: StoreClock<'_>,
    given: &[Given<'_>],
) -> Result<LeaseStatus, Error> {
    if change.execute(session, clock, given).await? > 0 {
        return Ok(LeaseStatus::Ours);
    }
    let found = owner.fetch(session, clock, given, &[Cell::Int]).await?;
    Ok(self::owner(found.first().map(|row| row.is(0))))
}

/// What is left of a lease with this many µs left.
pub(super) fn time_left(micros: Option<i64>) -> Duration {
    Duration::from_micros(
        micros
            .and_then(|left| u64::try_from(left).ok())
            .unwrap_or(0),
    )
}
