//! Holds, policies and blocked keys. Each statement runs in autocommit mode.

use super::{Statements, sql};
use crate::clock::from_micros;
use crate::sql::{Cell, Row, Session, Sql, TableNames, Value, micros};
use crate::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Error, Hold,
    error_text,
};

/// Statements on destinations.
#[derive(Debug)]
pub(super) struct DestinationSql {
    /// `$1` destination, `$2` µs, `$3` reason.
    hold: Sql,
    /// `$1` destination, `$2` reason.
    disable: Sql,
    /// `$1` destination.
    free: Sql,
    /// `$1` destination, `$2` the policy's name. `skip` lifts the destination's blocks.
    set_policy: Sql,
    /// `$1` after this destination, `$2` most rows. `destination`, `dead_head`, `hold_until` in µs
    /// or null where nothing or an operator holds it, `disabled`, `reason`.
    list: Sql,
    /// `$1` and `$2` after this destination and key, `$3` most rows. `destination`, `key`, `seq`,
    /// `since` in µs.
    blocked_keys: Sql,
}

impl DestinationSql {
    pub(super) fn new(names: &TableNames) -> Self {
        Self {
            hold: sql(names, HOLD),
            disable: sql(names, DISABLE),
            free: sql(names, FREE),
            set_policy: sql(names, SET_POLICY),
            list: sql(names, LIST),
            blocked_keys: sql(names, BLOCKED_KEYS),
        }
    }
}

const HOLD: &str = "INSERT INTO {destinations} AS d (destination, hold_until, reason)
SELECT $1, now() + $2::bigint * interval '1 microsecond', $3 WHERE $2 > 0
ON CONFLICT (destination) DO UPDATE
SET hold_until = EXCLUDED.hold_until, reason = EXCLUDED.reason
WHERE d.hold_until IS NULL OR d.hold_until < EXCLUDED.hold_until";

const DISABLE: &str = "INSERT INTO {destinations} AS d (destination, hold_until, reason)
VALUES ($1, 'infinity', $2)
ON CONFLICT (destination) DO UPDATE
SET hold_until = EXCLUDED.hold_until, reason = EXCLUDED.reason";

const FREE: &str =
    "UPDATE {destinations} SET hold_until = NULL, reason = NULL WHERE destination = $1";

const SET_POLICY: &str = "WITH lifted AS (
    DELETE FROM {blocked} WHERE destination = $1 AND $2 = 'skip'
)
INSERT INTO {destinations} (destination, dead_head) VALUES ($1, $2)
ON CONFLICT (destination) DO UPDATE SET dead_head = EXCLUDED.dead_head";

const LIST: &str = "SELECT destination, dead_head,
    CASE WHEN hold_until > now() AND hold_until < 'infinity'
        THEN (extract(epoch FROM hold_until) * 1000000)::bigint END,
    COALESCE(hold_until = 'infinity', false)::int::bigint,
    CASE WHEN hold_until > now() THEN reason END
FROM {destinations}
WHERE destination > $1 AND (dead_head <> 'skip' OR hold_until > now())
ORDER BY destination
LIMIT $2";

const BLOCKED_KEYS: &str =
    "SELECT destination, key, seq, (extract(epoch FROM since) * 1000000)::bigint FROM {blocked}
WHERE (destination, key) > ($1, $2)
ORDER BY destination, key
LIMIT $3";

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
    let (sql, destination) = (&sql.destinations, Value::Text(destination));
    let changed = match hold {
        Hold::For { period, reason } => {
            let (period, reason) = (Value::Int(micros(*period)), error_text(reason));
            let values = [destination, period, Value::Text(&reason)];
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
/// Those of the session.
pub async fn set_policy<S: Session>(
    session: &mut S,
    sql: &Statements,
    destination: &str,
    policy: DeadHeadPolicy,
) -> Result<(), Error> {
    let values = [Value::Text(destination), Value::Text(policy.as_str())];
    let set = &sql.destinations.set_policy;
    session.execute(set, &values).await.map(drop)
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
    let values = [Value::Text(after), Value::Int(page.rows.into())];
    let cells = [Cell::Bytes, Cell::Bytes, Cell::Int, Cell::Int, Cell::Bytes];
    let rows = session
        .fetch(&sql.destinations.list, &values, &cells)
        .await?;
    let state = |row: &Row| {
        let mut state = DestinationState::new(row.text(0).unwrap_or_default());
        state.dead_head_policy = DeadHeadPolicy::from_name(&row.text(1).unwrap_or_default());
        state.held_until = row.maybe(0).map(from_micros);
        state.disabled = row.is(1);
        state.reason = row.text(2);
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
        Some((destination, key)) => (destination.as_str(), key.as_str()),
        None => Default::default(),
    };
    let rows = Value::Int(page.rows.into());
    let values = [Value::Text(destination), Value::Text(key), rows];
    let cells = [Cell::Bytes, Cell::Bytes, Cell::Int, Cell::Int];
    let rows = session
        .fetch(&sql.destinations.blocked_keys, &values, &cells)
        .await?;
    Ok(rows.iter().map(Row::blocked_key).collect())
}
