//! Destinations: holds, policies, blocked keys.

use outbox_core::clock::from_micros;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, Hold, async_trait, error_text,
};
use sqlx::sqlite::SqliteRow;
use sqlx::{Error as SqlxError, Row};

use super::SqliteStore;
use super::error::classify;
use crate::query;

impl SqliteStore {
    pub(super) async fn hold_once(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        let sql = &self.sql.destinations;
        let statement = match hold {
            Hold::For { period, reason } => query(&sql.hold)
                .bind(destination)
                .bind(self.in_micros(period))
                .bind(error_text(&reason)),
            Hold::Disabled { reason } => query(&sql.disable)
                .bind(destination)
                .bind(error_text(&reason)),
            Hold::Free => query(&sql.free).bind(destination),
            _ => {
                return Err(Error::new(
                    outbox_core::ErrorKind::Unsupported,
                    "unknown hold",
                ));
            }
        };
        statement
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|error| classify("hold", error))
    }
}

#[async_trait]
impl Destinations for SqliteStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let failed = |error| classify("set policy", error);
        query(&self.sql.destinations.set_policy)
            .bind(destination)
            .bind(policy.as_str())
            .execute(&self.pool)
            .await
            .map_err(failed)?;
        if policy == DeadHeadPolicy::Skip {
            query(&self.sql.destinations.unblock)
                .bind(destination)
                .execute(&self.pool)
                .await
                .map_err(failed)?;
        }
        Ok(())
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        let rows = query(&self.sql.destinations.list)
            .bind(self.now_micros())
            .bind(page.after.as_deref())
            .bind(page.rows)
            .fetch_all(&self.pool)
            .await;
        rows.and_then(|rows| rows.iter().map(state).collect())
            .map_err(|error| classify("list destinations", error))
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        let after = page.after.as_ref();
        let rows = query(&self.sql.destinations.blocked)
            .bind(after.map(|(destination, _)| destination))
            .bind(after.map(|(_, key)| key))
            .bind(page.rows)
            .fetch_all(&self.pool)
            .await;
        rows.and_then(|rows| rows.iter().map(blocked).collect())
            .map_err(|error| classify("list blocked keys", error))
    }
}

fn state(row: &SqliteRow) -> Result<DestinationState, SqlxError> {
    let mut state = DestinationState::new(row.try_get::<String, _>(0)?);
    state.held_until = row.try_get::<Option<i64>, _>(1)?.map(from_micros);
    state.disabled = row.try_get(2)?;
    state.reason = row.try_get(3)?;
    state.dead_head_policy = DeadHeadPolicy::from_name(row.try_get(4)?);
    Ok(state)
}

fn blocked(row: &SqliteRow) -> Result<BlockedKey, SqlxError> {
    Ok(BlockedKey::new(
        row.try_get::<String, _>(0)?,
        row.try_get::<String, _>(1)?,
        row.try_get(2)?,
        from_micros(row.try_get(3)?),
    ))
}
