//! `PgStore` of outbox-sqlx behind the distribution's PgBouncer in transaction mode. Before version
//! 1.21 it knows no prepared statements: each statement may meet another connection of the server. With
//! the feature `newer-pgbouncer`, both adapters behind one that knows them.

#[cfg(feature = "newer-pgbouncer")]
#[path = "harness/at.rs"]
mod at;

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    Accepted, BeginKey, Begun, ClaimRequest, Enqueue, Fingerprint, IdempotencyKeys, Inbox,
    InboxMessage, LeaseStatus, LockRequest, LockStatus, Locks, Maintenance, NewEvent, OutboxStore,
    Outcome, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use outbox_sqlx::sqlx::{self, PgPool};
use tests::{PgBouncer, PgServer};
use tokio::task::JoinHandle;

type Problem = Box<dyn std::error::Error + Send + Sync>;
type Outcomes = Result<(), Problem>;

const WORKERS: u32 = 6;
const EVENTS: u32 = 30;

async fn pool(url: &str, connections: u32) -> Result<PgPool, sqlx::Error> {
    let options: PgConnectOptions = url.parse()?;
    PgPoolOptions::new()
        .max_connections(connections)
        .connect_with(options.statement_cache_capacity(0))
        .await
}

/// A bouncer, and a store behind it.
async fn behind(connections: u32) -> Result<(PgBouncer, PgStore), Problem> {
    let server = PgServer::shared();
    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap_or_default();
    let bouncer = PgBouncer::start(server, database);
    let store = PgStore::new(pool(&bouncer.url(database), connections).await?);
    Ok((bouncer, store.in_transactions(true)))
}

fn request(rows: u32) -> ClaimRequest {
    let rows = NonZeroU32::new(rows).unwrap_or(NonZeroU32::MIN);
    ClaimRequest::new(rows, Duration::from_secs(60))
}

async fn produce(store: &PgStore, n: u32) -> Outcomes {
    let message = InboxMessage::from_source("forge", n.to_string())?;
    let event = NewEvent::bytes("T", "x").key(n % 7);
    let mut tx = store.pool().begin().await?;
    assert_eq!(store.accept(&mut tx, &message).await?, Accepted::First);
    assert_eq!(store.accept(&mut tx, &message).await?, Accepted::Duplicate);
    store
        .enqueue(&mut tx, event.to("https://ci.example/hooks"))
        .await?;
    tx.commit().await?;
    Ok(())
}

/// Claims and settles once; returns how many.
async fn relay(store: &impl OutboxStore) -> Result<usize, Problem> {
    let claim = store.claim(&request(5)).await?;
    let settle = |claimed: &outbox_core::Claimed| {
        let lease = claimed.lease;
        Settlement::new(lease, Outcome::Published)
    };
    let batch: Vec<Settlement> = claim.events.iter().map(settle).collect();
    let answers = store.settle(&batch).await?;
    assert!(answers.iter().all(|answer| *answer == LeaseStatus::Ours));
    Ok(answers.len())
}

/// How many events workers have settled, with those that they left.
async fn in_the_end<S: OutboxStore + Maintenance>(
    store: &S,
    workers: Vec<JoinHandle<Result<usize, Problem>>>,
) -> Result<usize, Problem> {
    let mut settled = 0;
    for worker in workers {
        settled += worker.await??;
    }
    while store.stats(1_000).await?.pending.value > 0 {
        settled += relay(store).await?;
    }
    Ok(settled)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_in_transactions_works_behind_an_old_bouncer() -> Outcomes {
    let (_bouncer, store) = behind(WORKERS).await?;
    store.migrate().await?;
    works(&store).await
}

/// What producers, relays and receivers ask of it.
async fn works(store: &PgStore) -> Outcomes {
    store.check_schema().await?;
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        let store = store.clone();
        workers.push(tokio::spawn(async move {
            let mut settled = 0;
            for n in 0..EVENTS {
                produce(&store, worker * EVENTS + n).await?;
                settled += relay(&store).await?;
            }
            Ok::<_, Problem>(settled)
        }));
    }
    let settled = in_the_end(store, workers).await?;
    assert_eq!(settled, usize::try_from(WORKERS * EVENTS)?);

    let message = InboxMessage::from_source("forge", "key")?;
    let begin = BeginKey::new(message.key, Fingerprint::from_bytes([1; 32]));
    assert_eq!(store.begin_key(&begin).await?, Begun::Started);
    let lock = LockRequest::new("job");
    assert_eq!(store.try_lock(&lock).await?, LockStatus::Acquired);
    let other = store.try_lock(&LockRequest::new("job")).await?;
    assert!(matches!(other, LockStatus::Held { .. }), "{other:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_an_old_bouncer_can_t_bear_says_what_to_do() -> Outcomes {
    let server = PgServer::shared();
    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap_or_default();
    PgStore::new(PgPool::connect(&url).await?).migrate().await?;
    let bouncer = PgBouncer::start(server, database);
    let store = PgStore::new(PgPool::connect(&bouncer.url(database)).await?);
    let ask = || async {
        for _ in 0..EVENTS {
            store.claim(&request(5)).await?;
            store.stats(10).await?;
        }
        Ok::<_, outbox_core::Error>(())
    };
    let all = futures::future::join_all((0..WORKERS).map(|_| ask())).await;
    // None where the distribution's is a newer one.
    for refused in all.into_iter().filter_map(Result::err) {
        assert!(
            refused.to_string().contains("in_transactions"),
            "{refused:?}"
        );
    }
    Ok(())
}

/// A call that is dropped anywhere leaves no transaction open: neither in the pool, where the next
/// call would join it, nor at the server, where its locks would stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_cut_short_leaves_no_transaction_behind() -> Outcomes {
    let (_bouncer, store) = behind(1).await?;
    store.migrate().await?;
    for n in 0..20 {
        produce(&store, n).await?;
    }
    for n in 0..20 {
        let asked = request(1);
        let _ = tokio::time::timeout(Duration::from_micros(n * 150), store.claim(&asked)).await;
        store.release_claim(asked.token).await?;
    }
    let mut settled = 0;
    while store.stats(1_000).await?.pending.value > 0 {
        settled += relay(&store).await?;
    }
    assert_eq!(settled, 20);
    Ok(())
}

#[cfg(feature = "newer-pgbouncer")]
mod that_knows_prepared_statements {
    use diesel_async::{AsyncConnection, AsyncPgConnection};
    use outbox_core::Retention;

    use super::*;
    use crate::at::At;

    fn start() -> (PgBouncer, String) {
        let server = PgServer::shared();
        let url = server.create_database();
        let database = url.rsplit('/').next().unwrap_or_default();
        let bouncer = PgBouncer::start_newer(server, database);
        let url = bouncer.url(database);
        (bouncer, url)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_store_of_outbox_sqlx_needs_no_transactions() -> Outcomes {
        let (_bouncer, url) = start();
        works(&PgStore::at(&url, WORKERS, Retention::Keep).await).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_store_of_outbox_diesel_works_too() -> Outcomes {
        let (_bouncer, url) = start();
        let store = outbox_diesel::PgStore::at(&url, WORKERS, Retention::Keep).await;
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            let (store, url) = (store.clone(), url.clone());
            workers.push(tokio::spawn(async move {
                let mut conn = AsyncPgConnection::establish(&url).await?;
                let mut settled = 0;
                for n in 0..EVENTS {
                    let event = NewEvent::bytes("T", "x")
                        .key(n % 7)
                        .dedup_key(format!("{n}"));
                    let event = event.to("https://ci.example/hooks");
                    store.enqueue(&mut conn, event).await?;
                    settled += relay(&store).await?;
                }
                Ok::<_, Problem>(settled)
            }));
        }
        let settled = in_the_end(&store, workers).await?;
        // Each key once, whoever came first.
        assert_eq!(settled, usize::try_from(EVENTS)?);
        Ok(())
    }
}
