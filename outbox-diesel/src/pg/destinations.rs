//! Holds, policies and blocked keys.

use diesel::deserialize;
use diesel::pg::Pg;
use diesel::row::Row;
use outbox_core::sql::micros;
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, Hold, async_trait, error_text,
};

use super::value::Value;
use super::{PgStore, execute, retried, rows};
use crate::read::{Columns, FromRow, Reader};

impl PgStore {
    pub(super) async fn hold_once(&self, destination: &str, hold: &Hold) -> Result<(), Error> {
        let mut conn = self.connection().await?;
        let statements = &self.sql.destinations;
        let text;
        let mut values = vec![Value::Text(Some(destination))];
        let sql = match hold {
            Hold::For { period, reason } => {
                text = error_text(reason);
                values.push(Value::BigInt(Some(micros(*period))));
                values.push(Value::Text(Some(&text)));
                &statements.hold
            }
            Hold::Disabled { reason } => {
                text = error_text(reason);
                values.push(Value::Text(Some(&text)));
                &statements.disable
            }
            _ => &statements.free,
        };
        let done = execute(&mut conn, "hold", sql, values).await;
        self.scan().destinations_changed();
        done.map(drop)
    }

    async fn set_policy_once(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let mut conn = self.connection().await?;
        let values = vec![
            Value::Text(Some(destination)),
            Value::Text(Some(policy.as_str())),
        ];
        let sql = &self.sql.destinations.set_policy;
        execute(&mut conn, "set_dead_head_policy", sql, values)
            .await
            .map(drop)
    }
}

#[async_trait]
impl Destinations for PgStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        retried!(self.set_policy_once(destination, policy))?;
        self.scan().destinations_changed();
        Ok(())
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        let mut conn = self.connection().await?;
        let values = vec![
            Value::Text(Some(page.after.as_deref().unwrap_or_default())),
            Value::BigInt(Some(page.rows.into())),
        ];
        rows(
            &mut conn,
            "destinations",
            &self.sql.destinations.list,
            values,
        )
        .await
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        let mut conn = self.connection().await?;
        let after = page.after.as_ref();
        let values = vec![
            Value::Text(Some(after.map_or("", |(destination, _)| destination))),
            Value::Text(Some(after.map_or("", |(_, key)| key))),
            Value::BigInt(Some(page.rows.into())),
        ];
        let sql = &self.sql.destinations.blocked_keys;
        rows(&mut conn, "blocked_keys", sql, values).await
    }
}

impl FromRow<Pg> for DestinationState {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        let mut state = Self::new(row.get(Pg::text)?);
        state.dead_head_policy = DeadHeadPolicy::from_name(&row.get(Pg::text)?);
        state.held_until = row.maybe(Pg::instant)?;
        state.disabled = row.get(Pg::boolean)?;
        state.reason = row.maybe(Pg::text)?;
        Ok(state)
    }
}

impl FromRow<Pg> for BlockedKey {
    fn from_row<'a, R: Row<'a, Pg>>(row: &mut Reader<'_, Pg, R>) -> deserialize::Result<Self> {
        Ok(Self::new(
            row.get(Pg::text)?,
            row.get(Pg::text)?,
            row.get(Pg::bigint)?,
            row.get(Pg::instant)?,
        ))
    }
}
