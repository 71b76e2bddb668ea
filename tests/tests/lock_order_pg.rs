//! In which order settles and extensions lock rows: by `seq`, however these lie in the table and in
//! whatever order they are named, so that no two of them wait for each other.

#[path = "harness/waiting.rs"]
mod waiting;

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    ClaimRequest, DeathReason, Lease, LeaseStatus, OutboxStore, Outcome, Retention, Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::{self, Connection, PgConnection, PgPool};
use tests::PgServer;
use waiting::until_it_waits;

const LEASE: Duration = Duration::from_secs(600);
/// The rows with the lower numbers come later in the table.
const ROWS: &str = "INSERT INTO outbox_events (seq, id, event_type, destination, payload)
    SELECT n, gen_random_uuid(), 'T', 'd', 'x' FROM generate_series(40, 1, -1) n";

struct Scene {
    store: PgStore,
    blocker: PgConnection,
    observer: PgConnection,
}

impl Scene {
    async fn new(retention: Retention) -> Self {
        let url = PgServer::shared().create_database();
        let pool = PgPool::connect(&url).await.expect("connected");
        let store = PgStore::new(pool).retention(retention);
        store.migrate().await.expect("migrated");
        let done = sqlx::query(ROWS).execute(store.pool()).await;
        done.expect("filled");
        Self {
            store,
            blocker: PgConnection::connect(&url).await.expect("connected"),
            observer: PgConnection::connect(&url).await.expect("connected"),
        }
    }

    /// The leases of so many claims of five, the last ones first.
    async fn claim(&self, claims: u32) -> Vec<Lease> {
        let mut leases = Vec::new();
        for _ in 0..claims {
            let request = ClaimRequest::new(NonZeroU32::new(5).expect("rows"), LEASE);
            let claim = self.store.claim(&request).await.expect("claimed");
            leases.extend(claim.events.iter().map(|claimed| claimed.lease));
        }
        leases.reverse();
        leases
    }

    /// Makes the call while another session has the row with the lowest number, and looks which rows it
    /// has locked by the time at which it waits for that.
    async fn locks_none_before_the_first<F>(&mut self, leases: &[Lease], call: F)
    where
        F: Future<Output = Vec<LeaseStatus>> + Send + 'static,
    {
        let first = leases.iter().map(|lease| lease.seq).min().expect("leases");
        let mut tx = self.blocker.begin().await.expect("begun");
        let lock = sqlx::query("SELECT FROM outbox_events WHERE seq = $1 FOR UPDATE");
        lock.bind(first).execute(&mut *tx).await.expect("locked");
        let call = tokio::spawn(call);
        until_it_waits(&mut self.observer, &call).await;
        let free: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM (
                 SELECT FROM outbox_events WHERE lease_token IS NOT NULL FOR UPDATE SKIP LOCKED) e",
        )
        .fetch_one(&mut self.observer)
        .await
        .expect("counted");
        assert_eq!(free, i64::try_from(leases.len()).expect("few") - 1);
        tx.rollback().await.expect("rolled back");
        let statuses = call.await.expect("no panic");
        assert_eq!(statuses, vec![LeaseStatus::Ours; leases.len()]);
    }

    async fn settle(&mut self, claims: u32, outcome: fn(usize) -> Outcome) {
        let leases = self.claim(claims).await;
        let settlement = |(place, lease): (usize, &Lease)| Settlement::new(*lease, outcome(place));
        let batch: Vec<Settlement> = leases.iter().enumerate().map(settlement).collect();
        let store = self.store.clone();
        self.locks_none_before_the_first(&leases, async move {
            store.settle(&batch).await.expect("settled")
        })
        .await;
    }
}

fn mixed(place: usize) -> Outcome {
    let (after, error) = (Duration::from_secs(60), "500".to_owned());
    match place % 4 {
        0 => Outcome::Published,
        1 => Outcome::Retry { after, error },
        2 => Outcome::Release,
        _ => Outcome::Dead {
            reason: DeathReason::Gone,
            error,
        },
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settles_lock_rows_by_their_number() {
    for retention in [Retention::DeleteAtOnce, Retention::Keep] {
        let mut scene = Scene::new(retention).await;
        for claims in [1, 2] {
            scene.settle(claims, |_| Outcome::Published).await;
        }
        scene.settle(2, mixed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_lock_rows_by_their_number() {
    let mut scene = Scene::new(Retention::Keep).await;
    let leases = scene.claim(2).await;
    let (store, all) = (scene.store.clone(), leases.clone());
    scene
        .locks_none_before_the_first(&leases, async move {
            store.extend(&all, LEASE).await.expect("extended")
        })
        .await;
}
