//! Claiming, and the calls of a relay.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use diesel::deserialize;
use diesel::row::Row;
use diesel::sqlite::Sqlite;
use diesel::{QueryResult, SqliteConnection};
use outbox_core::clock::to_micros;
use outbox_core::sql::{EventRow, json, micros, releases};
use outbox_core::{
    Claim, ClaimRequest, DestinationFilter, Error, Hold, Lease, LeaseStatus, LeaseToken,
    OutboxStore, Settlement, Undecodable, async_trait,
};

use super::value::Value;
use super::{SqliteStore, execute, row, rows};
use crate::read::{Columns, FromRow, Reader};

#[async_trait]
impl OutboxStore for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, Error> {
        let request = request.clone();
        self.on_pool("claim", move |store, conn| store.claim_on(conn, &request))
            .await
    }

    async fn settle(&self, batch: &[Settlement]) -> Result<Vec<LeaseStatus>, Error> {
        let batch = batch.to_vec();
        self.on_pool("settle", move |store, conn| store.settle_on(conn, &batch))
            .await
    }

    async fn extend(&self, leases: &[Lease], by: Duration) -> Result<Vec<LeaseStatus>, Error> {
        let leases = leases.to_vec();
        self.on_pool("extend", move |store, conn| {
            store.extend_on(conn, &leases, by)
        })
        .await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>, Error> {
        self.settle(&releases(leases)).await
    }

    async fn release_claim(&self, token: LeaseToken) -> Result<u64, Error> {
        self.on_pool("release_claim", move |store, conn| {
            store.release_claim_on(conn, token)
        })
        .await
    }

    async fn hold(&self, destination: &str, hold: Hold) -> Result<(), Error> {
        let destination = destination.to_owned();
        self.on_pool("hold", move |store, conn| {
            store.hold_on(conn, &destination, &hold)
        })
        .await
    }
}

impl SqliteStore {
    fn claim_on(&self, conn: &mut SqliteConnection, request: &ClaimRequest) -> QueryResult<Claim> {
        let now = self.now();
        let (sql, at) = (&self.sql.claim, to_micros(now));
        let limit = i64::from(request.rows.get());
        let (only, except) = match &request.destinations {
            DestinationFilter::Only(names) => (Some(json(names)), json::<String>(&[])),
            DestinationFilter::Except(names) => (None, json(names)),
            _ => (None, json::<String>(&[])),
        };
        let look: Look = row(
            conn,
            &sql.look,
            vec![Value::number(at), Value::number(limit)],
        )?;
        if look.held || matches!(request.destinations, DestinationFilter::Except(_)) {
            for park in [&sql.park_rows, &sql.park_keys] {
                let values = vec![Value::number(at), Value::text(Some(&except))];
                execute(conn, park, values)?;
            }
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed).rem_euclid(4);
        let values = vec![
            Value::number(at),
            Value::number(limit),
            Value::owned(request.event_types.as_deref().map(json)),
            Value::owned(only),
            Value::owned(Some(except)),
            Value::number(limit / look.keys.max(1) + 1),
            Value::number(i64::try_from(request.bytes).unwrap_or(i64::MAX)),
            Value::Id(*request.token.as_bytes()),
            Value::number(at.saturating_add(micros(request.lease))),
            Value::number(turn),
        ];
        let mut claim = Claim::default();
        for Found { seq, event } in rows(conn, &sql.claim, values)? {
            let claimed =
                event.and_then(|(event, blocks)| event.claimed(request.token, now, blocks));
            match claimed {
                Ok(claimed) => claim.events.push(claimed),
                Err(problem) => {
                    let lease = Lease::new(seq, request.token);
                    claim.undecodable.push(Undecodable::new(lease, problem));
                }
            }
        }
        claim
            .events
            .sort_unstable_by_key(|claimed| claimed.lease.seq);
        claim.next_due = look.next_due.map(|due| {
            let wait = due.duration_since(now);
            wait.unwrap_or(Duration::ZERO)
        });
        Ok(claim)
    }
}

/// What there is to claim.
struct Look {
    keys: i64,
    held: bool,
    next_due: Option<SystemTime>,
}

impl FromRow<Sqlite> for Look {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        row: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        Ok(Self {
            keys: row.get(Sqlite::bigint)?,
            held: row.get(Sqlite::boolean)?,
            next_due: row.maybe(Sqlite::instant)?,
        })
    }
}

/// A claimed row, with whether its death blocks its key. One that can't be read fails alone.
struct Found {
    seq: i64,
    event: Result<(EventRow, bool), String>,
}

impl FromRow<Sqlite> for Found {
    fn from_row<'a, R: Row<'a, Sqlite>>(
        row: &mut Reader<'_, Sqlite, R>,
    ) -> deserialize::Result<Self> {
        let seq = row.rewound().get(Sqlite::bigint)?;
        let mut all = || {
            let event = EventRow::from_row(row)?;
            deserialize::Result::Ok((event, row.get(Sqlite::boolean)?))
        };
        let event = all().map_err(|problem| problem.to_string());
        Ok(Self { seq, event })
    }
}
