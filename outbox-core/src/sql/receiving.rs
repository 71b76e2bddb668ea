//! What the calls of receivers share: proving a token, and what is left of a lease.

use std::time::Duration;

use super::named::{Given, Named, StoreClock};
use super::{Cell, Session};
use crate::{Error, LeaseStatus};

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
    match found.first() {
        Some(row) if row.is(0) => Ok(LeaseStatus::Lost),
        _ => Ok(LeaseStatus::Unknown),
    }
}

/// What is left of a lease with this many µs left.
pub(super) fn time_left(micros: Option<i64>) -> Duration {
    Duration::from_micros(
        micros
            .and_then(|left| u64::try_from(left).ok())
            .unwrap_or(0),
    )
}
