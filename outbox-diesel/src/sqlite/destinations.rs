//! Destinations: holds, policies, blocked keys.

use diesel::deserialize;
use diesel::row::Row;
use diesel::sqlite::Sqlite;
use diesel::{QueryResult, SqliteConnection};
use outbox_core::{
    BlockedKey, BlockedKeyPage, DeadHeadPolicy, DestinationPage, DestinationState, Destinations,
    Error, Hold, async_trait, error_text,
};

use super::value::Value;
use super::{SqliteStore, execute, rows};
use crate::read::{Columns, FromRow, Reader};

impl SqliteStore {
    pub(super) fn hold_on(
        &self,
        conn: &mut SqliteConnection,
        destination: &str,
        hold: &Hold,
    ) -> QueryResult<()> {
        let statements = &self.sql.destinations;
        let mut values = vec![Value::text(Some(destination))];
        let sql = match hold {
            Hold::For { period, reason } => {
                values.push(Value::number(self.in_micros(*period)));
                values.push(Value::owned(Some(error_text(reason))));
                &statements.hold
            }
            Hold::Disabled { reason } => {
                values.push(Value::owned(Some(error_text(reason))));
                &statements.disable
            }
            _ => &statements.free,
        };
        execute(conn, sql, values).map(drop)
    }
}

#[async_trait]
impl Destinations for SqliteStore {
    async fn set_dead_head_policy(
        &self,
        destination: &str,
        policy: DeadHeadPolicy,
    ) -> Result<(), Error> {
        let destination = destination.to_owned();
        self.on_pool("set_dead_head_policy", move |store, conn| {
            let name = || Value::text(Some(&destination));
            let sql = &store.sql.destinations;
            let values = vec![name(), Value::text(Some(policy.as_str()))];
            execute(conn, &sql.set_policy, values)?;
            if policy == DeadHeadPolicy::Skip {
                execute(conn, &sql.unblock, vec![name()])?;
            }
            Ok(())
        })
        .await
    }

    async fn destinations(&self, page: &DestinationPage) -> Result<Vec<DestinationState>, Error> {
        let page = page.clone();
        self.on_pool("destinations", move |store, conn| {
            let values = vec![
                Value::number(store.now_micros()),
                Value::text(page.after.as_deref()),
                Value::number(page.rows),
            ];
            rows(conn, &store.sql.destinations.list, values)
        })
        .await
    }

    async fn blocked_keys(&self, page: &BlockedKeyPage) -> Result<Vec<BlockedKey>, Error> {
        let page = page.clone();
        self.on_pool("blocked_keys", move |store, conn| {
            let after = page.after.as_ref();
            let values = vec![
                Value::text(after.map(|(destination, _)| destination.as_str())),
                Value::text(after.map(|(_, key)| key.as_str())),
                Value::number(page.rows),
            ];
            rows(conn, &store.sql.destinations.blocked, values)
        })
        .await
    }
}

impl FromRow<Sqlite> for DestinationState {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        row: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        let mut state = Self::new(row.get(Sqlite::text)?);
        state.held_until = row.maybe(Sqlite::instant)?;
        state.disabled = row.get(Sqlite::boolean)?;
        state.reason = row.maybe(Sqlite::text)?;
        state.dead_head_policy = DeadHeadPolicy::from_name(&row.get(Sqlite::text)?);
        Ok(state)
    }
}

impl FromRow<Sqlite> for BlockedKey {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        row: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        Ok(Self::new(
            row.get(Sqlite::text)?,
            row.get(Sqlite::text)?,
            row.get(Sqlite::bigint)?,
            row.get(Sqlite::instant)?,
        ))
    }
}
