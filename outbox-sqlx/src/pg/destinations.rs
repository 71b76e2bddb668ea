//! Holds, policies and blocked keys.

use outbox_core::sql::micros;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, Hold, async_trait, error_text,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::PgStore;
use super::error::classify;
use super::row::{Stamp, column};
use crate::query;
use crate::retry::retried;

impl PgStore {
    pub(super) async fn hold_once(&self, destination: &str, hold: &Hold) -> Result<(), Error> {
        let sql = &self.sql.destinations;
        let statement = match hold {
            Hold::For { period, reason } => query(&sql.hold)
                .bind(destination)
                .bind(micros(*period))
                .bind(error_text(reason)),
            Hold::Disabled { reason } => query(&sql.disable)
                .bind(destination)
                .bind(error_text(reason)),
            _ => query(&sql.free).bind(destination),
        };
        let done = self.changed("hold", statement).await;
        self.scan().destinations_changed();
        done.map(drop)
    }
}

#[async_trait]
impl Destinations for PgStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let set = || {
            query(&self.sql.destinations.set_policy)
                .bind(destination)
                .bind(policy.as_str())
        };
        retried!(self.changed("set_dead_head_policy", set()))?;
        self.scan().destinations_changed();
        Ok(())
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        let list = query(&self.sql.destinations.list)
            .bind(page.after.as_deref().unwrap_or_default())
            .bind(i64::from(page.rows));
        let rows = self.fetch_all("destinations", list).await?;
        let read: Result<_, sqlx::Error> = rows.iter().map(state).collect();
        read.map_err(|error| classify("destinations", error))
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        let after = page.after.as_ref();
        let list = query(&self.sql.destinations.blocked_keys)
            .bind(after.map_or("", |(destination, _)| destination))
            .bind(after.map_or("", |(_, key)| key))
            .bind(i64::from(page.rows));
        let rows = self.fetch_all("blocked_keys", list).await?;
        let read: Result<_, sqlx::Error> = rows.iter().map(blocked).collect();
        read.map_err(|error| classify("blocked_keys", error))
    }
}

fn state(row: &PgRow) -> Result<DestinationState, sqlx::Error> {
    let mut state = DestinationState::new(row.try_get::<String, _>(0)?);
    state.dead_head_policy = DeadHeadPolicy::from_name(row.try_get(1)?);
    state.held_until = column::<Option<Stamp>>(row, 2)?.map(|stamp| stamp.0);
    state.disabled = row.try_get(3)?;
    state.reason = row.try_get(4)?;
    Ok(state)
}

fn blocked(row: &PgRow) -> Result<BlockedKey, sqlx::Error> {
    let since: Stamp = column(row, 3)?;
    Ok(BlockedKey::new(
        row.try_get::<String, _>(0)?,
        row.try_get::<String, _>(1)?,
        row.try_get(2)?,
        since.0,
    ))
}
