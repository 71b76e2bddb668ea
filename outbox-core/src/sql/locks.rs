//! Leased locks: what the calls do, on every database. Each statement commits by itself.

use std::time::Duration;

use super::named::{Named, Param, StoreClock, first, id, period};
use super::receiving::{prove, time_left};
use super::{Cell, Session, Value};
use crate::locks::check_name;
use crate::{Error, LeaseStatus, LeaseToken, LockRequest, LockStatus};

/// The statements on leased locks, of one database.
///
/// # Errors
///
/// Those of the session; [`InvalidConfig`](crate::ErrorKind::InvalidConfig) for a name that can't be
/// kept.
#[derive(Debug)]
pub struct LockSql {
    /// The first that changes a row takes the lock. Name, token, lease.
    pub(super) acquire: Vec<Named>,
    /// How many µs the lock stays closed. Name.
    pub(super) left: Named,
    /// Name, token, period.
    pub(super) extend: Named,
    /// Name, token, and the period for which the lock cools down.
    pub(super) unlock: Named,
    /// Whether another token holds the lock; no row where there never was one. Name, token.
    pub(super) owner: Named,
}

impl LockSql {
    /// Takes the lock where it is free.
    ///
    /// # Errors
    ///
    /// As above.
    pub async fn try_lock<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        request: &LockRequest,
    ) -> Result<LockStatus, Error> {
        check_name(&request.name)?;
        let given = [
            (Param::Name, Value::Text(&request.name)),
            (Param::Token, id(request.token)),
            (Param::Lease, period(request.lease)),
        ];
        if first(&self.acquire, session, clock, &given).await? {
            return Ok(LockStatus::Acquired);
        }
        let left = self.left.fetch(session, clock, &given, &[Cell::Int]);
        let left = left.await?.first().and_then(|row| row.maybe(0));
        Ok(LockStatus::Held {
            retry_after: time_left(left),
        })
    }

    /// Lets the lease run until `by` from now.
    ///
    /// # Errors
    ///
    /// As above.
    pub async fn extend_lock<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        let extend = &self.extend;
        self.change(session, clock, extend, name, token, by).await
    }

    /// Gives the lock back, closed for `cooldown` more.
    ///
    /// # Errors
    ///
    /// As above.
    pub async fn unlock<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        name: &str,
        token: LeaseToken,
        cooldown: Duration,
    ) -> Result<LeaseStatus, Error> {
        let unlock = &self.unlock;
        self.change(session, clock, unlock, name, token, cooldown)
            .await
    }

    async fn change<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        change: &Named,
        name: &str,
        token: LeaseToken,
        by: Duration,
    ) -> Result<LeaseStatus, Error> {
        check_name(name)?;
        let given = [
            (Param::Name, Value::Text(name)),
            (Param::Token, id(token)),
            (Param::Period, period(by)),
        ];
        prove(change, &self.owner, session, clock, &given).await
    }
}
