//! Destinations: holds, policies, blocked keys.

use super::{Statements, after, now, sql};
use crate::clock::{Clock, from_micros};
use crate::sql::{Cell, Row, Session, Sql, TableNames, Value};
use crate::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Error, Hold,
    error_text,
};

/// The statements on destinations.
#[derive(Debug)]
pub(super) struct DestinationStatements {
    /// `?1` destination · `?2` until · `?3` reason. The later end stays; a disabled one stays as
    /// it is.
    hold: Sql,
    /// `?1` destination · `?2` reason.
    disable: Sql,
    /// `?1` destination.
    free: Sql,
    /// `?1` destination · `?2` policy.
    set_policy: Sql,
    /// `?1` destination: lifts its blocks.
    unblock: Sql,
    /// `?1` now · `?2` after this name, or null · `?3` rows. Returns destination, end of the hold or
    /// null, whether disabled, reason, policy.
    list: Sql,
    /// `?1` after this destination, or null · `?2` and key · `?3` rows. Returns destination, key,
    /// `seq`, since.
    blocked: Sql,
}

impl DestinationStatements {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            hold: sql(
                names,
                "INSERT INTO {~destinations} (destination, held_until, reason) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (destination) DO UPDATE SET \
                   reason = CASE WHEN disabled <> 0 OR held_until >= excluded.held_until \
                            THEN reason ELSE excluded.reason END, \
                   held_until = CASE WHEN disabled <> 0 THEN held_until \
                                ELSE max(coalesce(held_until, 0), excluded.held_until) END",
            ),
            disable: sql(
                names,
                "INSERT INTO {~destinations} (destination, disabled, reason) VALUES (?1, 1, ?2) \
                 ON CONFLICT (destination) DO UPDATE SET \
                   disabled = 1, held_until = NULL, reason = excluded.reason",
            ),
            free: sql(
                names,
                "UPDATE {~destinations} SET disabled = 0, held_until = NULL, reason = NULL \
                 WHERE destination = ?1",
            ),
            set_policy: sql(
                names,
                "INSERT INTO {~destinations} (destination, policy) VALUES (?1, ?2) \
                 ON CONFLICT (destination) DO UPDATE SET policy = excluded.policy",
            ),
            unblock: sql(names, "DELETE FROM {~blocked_keys} WHERE destination = ?1"),
            list: sql(
                names,
                "SELECT destination, CASE WHEN held_until > ?1 THEN held_until END, disabled <> 0, \
                   reason, policy \
                 FROM {~destinations} \
                 WHERE (disabled <> 0 OR held_until > ?1 OR policy <> 'skip') \
                   AND (?2 IS NULL OR destination > ?2) \
                 ORDER BY destination LIMIT ?3",
            ),
            blocked: sql(
                names,
                "SELECT destination, \"key\", seq, since FROM {~blocked_keys} \
                 WHERE ?1 IS NULL OR (destination, \"key\") > (?1, ?2) \
                 ORDER BY destination, \"key\" LIMIT ?3",
            ),
        }
    }
}

/// Holds, disables or frees a destination.
///
/// # Errors
///
/// Those of the session.
pub async fn hold<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    destination: &str,
    hold: &Hold,
) -> Result<(), Error> {
    let (sql, destination) = (&sql.destinations, Value::Text(destination));
    let changed = match hold {
        Hold::For { period, reason } => {
            let (until, reason) = (Value::Int(after(clock, *period)), error_text(reason));
            let values = [destination, until, Value::Text(&reason)];
            session.execute(&sql.hold, &values).await
        }
        Hold::Disabled { reason } => {
            let reason = error_text(reason);
            let values = [destination, Value::Text(&reason)];
            session.execute(&sql.disable, &values).await
        }
        Hold::Free => session.execute(&sql.free, &[destination]).await,
    };
    changed.map(drop)
}

/// Sets what a dead event does to its key.
///
/// # Errors
///
/// Those of the session. The policy may be set all the same; the call can be made again.
pub async fn set_policy<S: Session>(
    session: &mut S,
    sql: &Statements,
    destination: &str,
    policy: DeadHeadPolicy,
) -> Result<(), Error> {
    let (sql, destination) = (&sql.destinations, Value::Text(destination));
    let values = [destination, Value::Text(policy.as_str())];
    session.execute(&sql.set_policy, &values).await?;
    if policy == DeadHeadPolicy::Skip {
        session.execute(&sql.unblock, &[destination]).await?;
    }
    Ok(())
}

/// A page of the destinations that are held or disabled, or whose policy is not the default.
///
/// # Errors
///
/// Those of the session.
pub async fn destinations<S: Session>(
    session: &mut S,
    sql: &Statements,
    clock: &dyn Clock,
    page: &DestinationPage,
) -> Result<Vec<DestinationState>, Error> {
    let values = [
        Value::Int(now(clock)),
        Value::text(page.after.as_deref()),
        Value::Int(page.rows.into()),
    ];
    let cells = [Cell::Bytes, Cell::Int, Cell::Int, Cell::Bytes, Cell::Bytes];
    let rows = session
        .fetch(&sql.destinations.list, &values, &cells)
        .await?;
    let state = |row: &Row| {
        let mut state = DestinationState::new(row.text(0).unwrap_or_default());
        state.held_until = row.maybe(0).map(from_micros);
        state.disabled = row.is(1);
        state.reason = row.text(1);
        state.dead_head_policy = DeadHeadPolicy::from_name(&row.text(2).unwrap_or_default());
        state
    };
    Ok(rows.iter().map(state).collect())
}

/// A page of the blocked keys.
///
/// # Errors
///
/// Those of the session.
pub async fn blocked_keys<S: Session>(
    session: &mut S,
    sql: &Statements,
    page: &BlockedKeyPage,
) -> Result<Vec<BlockedKey>, Error> {
    let after = page.after.as_ref();
    let values = [
        Value::text(after.map(|(destination, _)| destination.as_str())),
        Value::text(after.map(|(_, key)| key.as_str())),
        Value::Int(page.rows.into()),
    ];
    let cells = [Cell::Bytes, Cell::Bytes, Cell::Int, Cell::Int];
    let rows = session
        .fetch(&sql.destinations.blocked, &values, &cells)
        .await?;
    Ok(rows.iter().map(Row::blocked_key).collect())
}
