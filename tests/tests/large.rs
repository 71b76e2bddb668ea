//! Numbers beyond 32 bits, and payloads beyond what is allowed by default.
#![expect(clippy::unwrap_used, reason = "a failure of the set-up fails the test")]

#[path = "harness/open.rs"]
mod open;

use std::num::NonZeroU32;
use std::time::Duration;

use open::Open;
use outbox_core::{
    ClaimRequest, DeadLetterFilter, DeadLetters, DeathReason, Enqueue, EventLimits, Maintenance,
    NewEvent, OutboxStore, Outcome, Replay, Settlement,
};
use outbox_sqlx::sqlx::{self, Executor};
use outbox_sqlx::{MySqlStore, PgStore, SqliteStore};

/// The number that the next event gets, at least.
const NEXT: i64 = 5_000_000_000;
const MEGABYTES: usize = 5 << 20;

fn limits() -> EventLimits {
    let mut limits = EventLimits::default();
    limits.payload = MEGABYTES;
    limits
}

fn request() -> ClaimRequest {
    ClaimRequest::new(NonZeroU32::new(10).unwrap(), Duration::from_secs(60))
}

/// An event with a key and one without go through all that an event can go through.
async fn survive<C, S>(store: &S, conn: &mut C)
where
    S: Enqueue<C> + OutboxStore + DeadLetters + Maintenance,
{
    let payload: Vec<u8> = (0..MEGABYTES)
        .map(|n| u8::try_from(n % 251).unwrap())
        .collect();
    let event = || NewEvent::bytes("T", payload.clone()).to("https://ci.example/hooks");
    let keyed = event().key("k").dedup_key("once");
    store.enqueue(conn, event()).await.unwrap();
    store.enqueue(conn, keyed).await.unwrap();
    for replays in 0..2 {
        let mut claimed = Vec::new();
        // A claim brings 8 MiB: one event.
        for _ in 0..4 {
            claimed.extend(store.claim(&request()).await.unwrap().events);
        }
        assert_eq!(claimed.len(), 2);
        let mut batch = Vec::new();
        for one in &claimed {
            assert!(one.lease.seq >= NEXT, "{}", one.lease.seq);
            assert_eq!(one.event.seq, one.lease.seq);
            assert_eq!(one.event.replays, replays);
            assert!(one.event.payload == payload, "another payload");
            let outcome = match replays {
                0 => Outcome::Dead {
                    reason: DeathReason::Gone,
                    error: "410 Gone".to_owned(),
                },
                _ => Outcome::Published,
            };
            batch.push(Settlement::new(one.lease, outcome));
        }
        let extended: Vec<_> = claimed.iter().map(|one| one.lease).collect();
        store
            .extend(&extended, Duration::from_secs(60))
            .await
            .unwrap();
        store.settle(&batch).await.unwrap();
        if replays == 0 {
            let replay = Replay::new(DeadLetterFilter::all());
            assert_eq!(store.replay(&replay).await.unwrap(), 2);
        }
    }
    assert_eq!(store.stats(10).await.unwrap().pending.value, 0);
}

#[tokio::test]
async fn events_survive_on_postgres() {
    let (store, mut conn, _) = PgStore::open().await;
    let next = sqlx::query("SELECT setval('outbox_events_seq', $1)").bind(NEXT);
    conn.execute(next).await.unwrap();
    survive(&store.limits(limits()), &mut *conn).await;
}

#[tokio::test]
async fn events_survive_on_mysql() {
    let (store, mut conn, _) = MySqlStore::open().await;
    let next = "ALTER TABLE outbox_events AUTO_INCREMENT = 5000000000";
    conn.execute(next).await.unwrap();
    survive(&store.limits(limits()), &mut *conn).await;
}

#[tokio::test]
async fn events_survive_on_sqlite() {
    let (store, mut conn, _folder) = SqliteStore::open().await;
    let next = "INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox_events', 5000000000)";
    conn.execute(next).await.unwrap();
    survive(&store.limits(limits()), &mut *conn).await;
}
