//! Holds, policies and blocked keys: what the calls do, on every database.

use super::named::{Named, Param, StoreClock, period};
use super::{Cell, Row, Session, Value};
use crate::clock::from_micros;
use crate::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Error, Hold,
    error_text,
};

/// The statements on destinations, of one database.
#[derive(Debug)]
pub struct DestinationSql {
    /// The later end stays, and a disabled destination as it is. Destination, period, reason.
    pub(super) hold: Named,
    /// Destination, reason.
    pub(super) disable: Named,
    /// Destination.
    pub(super) free: Named,
    /// Destination, policy.
    pub(super) set_policy: Named,
    /// Lifts the destination's blocks, where `set_policy` doesn't do that for `skip`. Destination.
    pub(super) lift_blocks: Option<Named>,
    /// Destination, policy, the hold's end in µs (null where nothing or an operator holds it), whether
    /// disabled, reason. After this destination, rows.
    pub(super) list: Named,
    /// Destination, key, `seq`, since when in µs. After this destination and key, rows.
    pub(super) blocked: Named,
}

impl DestinationSql {
    /// Holds, disables or frees a destination.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn hold<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        destination: &str,
        hold: &Hold,
    ) -> Result<(), Error> {
        let destination = (Param::Destination, Value::Text(destination));
        let changed = match hold {
            Hold::For {
                period: held,
                reason,
            } => {
                let reason = error_text(reason);
                let given = [
                    destination,
                    (Param::Period, period(*held)),
                    (Param::Reason, Value::Text(&reason)),
                ];
                self.hold.execute(session, clock, &given).await
            }
            Hold::Disabled { reason } => {
                let reason = error_text(reason);
                let given = [destination, (Param::Reason, Value::Text(&reason))];
                self.disable.execute(session, clock, &given).await
            }
            Hold::Free => self.free.execute(session, clock, &[destination]).await,
        };
        changed.map(drop)
    }

    /// Sets what a dead event does to its key.
    ///
    /// # Errors
    ///
    /// Those of the session. Outside of a transaction the policy may be set all the same; the call
    /// can be made again.
    pub async fn set_policy<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let given = [
            (Param::Destination, Value::Text(destination)),
            (Param::Policy, Value::Text(policy.as_str())),
        ];
        self.set_policy.execute(session, clock, &given).await?;
        if let Some(lift) = &self.lift_blocks
            && policy == DeadHeadPolicy::Skip
        {
            lift.execute(session, clock, &given).await?;
        }
        Ok(())
    }

    /// A page of the destinations that are held or disabled, or whose policy is not the default.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn destinations<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        page: &DestinationPage,
    ) -> Result<Vec<DestinationState>, Error> {
        let after = page.after.as_deref().unwrap_or_default();
        let given = [
            (Param::Destination, Value::Text(after)),
            (Param::Rows, Value::Int(page.rows.into())),
        ];
        let cells = [Cell::Bytes, Cell::Bytes, Cell::Int, Cell::Int, Cell::Bytes];
        let rows = self.list.fetch(session, clock, &given, &cells).await?;
        Ok(rows.iter().map(state).collect())
    }

    /// A page of the blocked keys.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub async fn blocked_keys<S: Session>(
        &self,
        session: &mut S,
        clock: StoreClock<'_>,
        page: &BlockedKeyPage,
    ) -> Result<Vec<BlockedKey>, Error> {
        let (destination, key) = match &page.after {
            Some((destination, key)) => (destination.as_str(), key.as_str()),
            None => Default::default(),
        };
        let given = [
            (Param::Destination, Value::Text(destination)),
            (Param::Key, Value::Text(key)),
            (Param::Rows, Value::Int(page.rows.into())),
        ];
        let cells = [Cell::Bytes, Cell::Bytes, Cell::Int, Cell::Int];
        let rows = self.blocked.fetch(session, clock, &given, &cells).await?;
        Ok(rows.iter().map(blocked_key).collect())
    }
}

fn state(row: &Row) -> DestinationState {
    let mut state = DestinationState::new(row.text(0).unwrap_or_default());
    state.dead_head_policy = DeadHeadPolicy::from_name(&row.text(1).unwrap_or_default());
    state.held_until = row.maybe(0).map(from_micros);
    state.disabled = row.is(1);
    state.reason = row.text(2);
    state
}

fn blocked_key(row: &Row) -> BlockedKey {
    let text = |at| row.text(at).unwrap_or_default();
    BlockedKey::new(text(0), text(1), row.int(0), from_micros(row.int(1)))
}
