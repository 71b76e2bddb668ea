//! Holds, policies and blocked keys.

use super::{Cell, Session, Statements, Value, sql};
use crate::clock::from_micros;
use crate::sql::{Row, Sql, TableNames, micros};
use crate::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Error, Hold,
    error_text,
};

#[derive(Debug)]
pub(super) struct DestinationSql {
    /// Destination, µs, reason. The later end stays; a disabled one stays as it is.
    hold: Sql,
    /// Destination, reason.
    disable: Sql,
    /// Destination.
    free: Sql,
    /// Destination, policy.
    set_policy: Sql,
    /// Destination.
    lift_blocks: Sql,
    /// Destination, reason, policy, end of the hold, whether disabled. After this one, rows.
    list: Sql,
    /// Destination, key, `seq`, since. After this destination twice and key, rows.
    blocked: Sql,
}

impl DestinationSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            hold: sql(
                names,
                "INSERT INTO {destinations} (destination, hold_until, reason) \
                 VALUES (?, :now + ?, ?) \
                 ON DUPLICATE KEY UPDATE \
                   reason = IF(disabled = 1 OR COALESCE(hold_until, 0) >= VALUES(hold_until), \
                     reason, VALUES(reason)), \
                   hold_until = IF(disabled = 1, hold_until, \
                     GREATEST(COALESCE(hold_until, 0), VALUES(hold_until)))",
            ),
            disable: sql(
                names,
                "INSERT INTO {destinations} (destination, disabled, reason) VALUES (?, 1, ?) \
                 ON DUPLICATE KEY UPDATE disabled = 1, hold_until = NULL, reason = VALUES(reason)",
            ),
            free: sql(
                names,
                "UPDATE {destinations} SET disabled = 0, hold_until = NULL, reason = NULL \
                 WHERE destination = ?",
            ),
            set_policy: sql(
                names,
                "INSERT INTO {destinations} (destination, dead_head) VALUES (?, ?) \
                 ON DUPLICATE KEY UPDATE dead_head = VALUES(dead_head)",
            ),
            lift_blocks: sql(names, "DELETE FROM {blocked} WHERE destination = ?"),
            list: sql(
                names,
                "SELECT destination, IF(disabled = 1 OR hold_until > :now, reason, NULL), \
                   dead_head, IF(hold_until > :now, hold_until, NULL), disabled \
                 FROM {destinations} \
                 WHERE destination > ? \
                   AND (disabled = 1 OR hold_until > :now OR dead_head <> 'skip') \
                 ORDER BY destination LIMIT ?",
            ),
            blocked: sql(
                names,
                "SELECT destination, `key`, seq, since FROM {blocked} \
                 WHERE destination > ? OR (destination = ? AND `key` > ?) \
                 ORDER BY destination, `key` LIMIT ?",
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
    destination: &str,
    hold: &Hold,
) -> Result<(), Error> {
    let sql = &sql.destinations;
    let destination = Value::Text(destination);
    match hold {
        Hold::For { period, reason } => {
            let reason = error_text(reason);
            let values = [
                destination,
                Value::Int(micros(*period)),
                Value::Text(&reason),
            ];
            session.execute(&sql.hold, &values).await?;
        }
        Hold::Disabled { reason } => {
            let reason = error_text(reason);
            let values = [destination, Value::Text(&reason)];
            session.execute(&sql.disable, &values).await?;
        }
        Hold::Free => {
            session.execute(&sql.free, &[destination]).await?;
        }
    }
    Ok(())
}

/// Sets what a dead event does to its key; in a transaction.
///
/// # Errors
///
/// Those of the session.
pub async fn set_policy<S: Session>(
    session: &mut S,
    sql: &Statements,
    destination: &str,
    policy: DeadHeadPolicy,
) -> Result<(), Error> {
    let destination = Value::Text(destination);
    let values = [destination, Value::Text(policy.as_str())];
    session
        .execute(&sql.destinations.set_policy, &values)
        .await?;
    if policy == DeadHeadPolicy::Skip {
        let lift = &sql.destinations.lift_blocks;
        session.execute(lift, &[destination]).await?;
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
    page: &DestinationPage,
) -> Result<Vec<DestinationState>, Error> {
    let after = page.after.as_deref().unwrap_or_default();
    let values = [Value::Bytes(after.as_bytes()), Value::Int(page.rows.into())];
    let cells = [Cell::Bytes, Cell::Bytes, Cell::Bytes, Cell::Int, Cell::Int];
    let rows = session
        .fetch(&sql.destinations.list, &values, &cells)
        .await?;
    let state = |row: &Row| {
        let mut state = DestinationState::new(row.text(0).unwrap_or_default());
        state.reason = row.text(1);
        state.dead_head_policy = DeadHeadPolicy::from_name(&row.text(2).unwrap_or_default());
        state.held_until = row.maybe(0).map(from_micros);
        state.disabled = row.is(1);
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
    let (destination, key) = match &page.after {
        Some((destination, key)) => (destination.as_bytes(), key.as_bytes()),
        None => Default::default(),
    };
    let destination = Value::Bytes(destination);
    let rows = Value::Int(page.rows.into());
    let values = [destination, destination, Value::Bytes(key), rows];
    let cells = [Cell::Bytes, Cell::Bytes, Cell::Int, Cell::Int];
    let rows = session
        .fetch(&sql.destinations.blocked, &values, &cells)
        .await?;
    Ok(rows.iter().map(Row::blocked_key).collect())
}
