//! Claiming.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use outbox_core::clock::{from_micros, to_micros};
use outbox_core::sql::{json, micros};
use outbox_core::{Claim, ClaimRequest, Claimed, DestinationFilter, Error, Lease, Undecodable};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Error as SqlxError, Row};

use super::SqliteStore;
use super::error::classify;
use super::row::{EVENT_COLUMNS, event_row};
use crate::query;

impl SqliteStore {
    pub(super) async fn claim_once(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let failed = |error| classify("claim", error);
        let mut conn = self.pool.acquire().await.map_err(failed)?;
        let now = self.now();
        self.claim_at(&mut conn, request, now).await.map_err(failed)
    }

    async fn claim_at(
        &self,
        conn: &mut SqliteConnection,
        request: &ClaimRequest,
        now: SystemTime,
    ) -> Result<Claim, SqlxError> {
        let (sql, at) = (&self.sql.claim, to_micros(now));
        let rows = i64::from(request.rows.get());
        let (only, except) = match &request.destinations {
            DestinationFilter::Only(names) => (Some(json(names)), json::<String>(&[])),
            DestinationFilter::Except(names) => (None, json(names)),
            _ => (None, json::<String>(&[])),
        };
        let look = query(&sql.look)
            .bind(at)
            .bind(rows)
            .fetch_one(&mut *conn)
            .await?;
        let keys: i64 = look.try_get(0)?;
        if look.try_get(1)? || matches!(request.destinations, DestinationFilter::Except(_)) {
            for park in [&sql.park_rows, &sql.park_keys] {
                query(park)
                    .bind(at)
                    .bind(&except)
                    .execute(&mut *conn)
                    .await?;
            }
        }
        let found = query(&sql.claim)
            .bind(at)
            .bind(rows)
            .bind(request.event_types.as_deref().map(json))
            .bind(only)
            .bind(except)
            .bind(rows / keys.max(1) + 1)
            .bind(i64::try_from(request.bytes).unwrap_or(i64::MAX))
            .bind(&request.token.as_bytes()[..])
            .bind(at.saturating_add(micros(request.lease)))
            .bind(self.turn.fetch_add(1, Ordering::Relaxed).rem_euclid(4))
            .fetch_all(conn)
            .await?;
        let mut claim = Claim::default();
        for row in found {
            match claimed(&row, request, now) {
                Ok(claimed) => claim.events.push(claimed),
                Err(problem) => {
                    let lease = Lease::new(row.try_get(0)?, request.token);
                    claim.undecodable.push(Undecodable::new(lease, problem));
                }
            }
        }
        claim
            .events
            .sort_unstable_by_key(|claimed| claimed.lease.seq);
        claim.next_due = look.try_get::<Option<i64>, _>(2)?.map(|due| {
            let wait = from_micros(due).duration_since(now);
            wait.unwrap_or(Duration::ZERO)
        });
        Ok(claim)
    }
}

fn claimed(row: &SqliteRow, request: &ClaimRequest, now: SystemTime) -> Result<Claimed, String> {
    let read = || Ok((event_row(row)?, row.try_get(EVENT_COLUMNS)?));
    let (event, death_blocks) = read().map_err(|error: SqlxError| error.to_string())?;
    event.claimed(request.token, now, death_blocks)
}
