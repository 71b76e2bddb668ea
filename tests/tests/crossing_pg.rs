//! Calls that meet a change of the same rows which another session has made and not committed.

#[path = "harness/waiting.rs"]
mod waiting;

use std::num::NonZeroU32;
use std::time::Duration;

use outbox_core::{
    BlockedKeyPage, ClaimRequest, DeadHeadPolicy, DeadLetterFilter, DeadLetters, DeathReason,
    Destinations, Enqueue, Lease, LeaseStatus, Maintenance, NewEvent, OutboxStore, Outcome, Page,
    Settlement,
};
use outbox_sqlx::PgStore;
use outbox_sqlx::sqlx::{self, AssertSqlSafe, Connection, PgConnection, PgPool};
use tests::PgServer;
use waiting::until_it_waits;

const LEASE: Duration = Duration::from_secs(600);

struct Scene {
    store: PgStore,
    other: PgConnection,
    observer: PgConnection,
}

impl Scene {
    async fn new(events: impl Iterator<Item = NewEvent>) -> Self {
        let url = PgServer::shared().create_database();
        let store = PgStore::new(PgPool::connect(&url).await.expect("connected"));
        store.migrate().await.expect("migrated");
        let block = store.set_dead_head_policy("d", DeadHeadPolicy::Block);
        block.await.expect("set");
        let mut conn = store.pool().acquire().await.expect("acquired");
        let stored = store.enqueue_all(&mut *conn, events.collect()).await;
        stored.expect("stored");
        drop(conn);
        Self {
            store,
            other: PgConnection::connect(&url).await.expect("connected"),
            observer: PgConnection::connect(&url).await.expect("connected"),
        }
    }

    async fn claim(&self) -> Vec<Lease> {
        let request = ClaimRequest::new(NonZeroU32::new(10).expect("rows"), LEASE);
        let claim = self.store.claim(&request).await.expect("claimed");
        claim.events.iter().map(|claimed| claimed.lease).collect()
    }

    async fn settle(&self, leases: &[Lease], outcome: Outcome) {
        let statuses = self.store.settle(&batch(leases, &outcome)).await;
        assert_eq!(statuses.expect("settled"), ours(leases.len()));
    }

    /// Makes the call once the other session has made these changes, which it commits when the call
    /// waits for them.
    async fn beside<T: Send + 'static>(
        &mut self,
        changes: &str,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let changes = AssertSqlSafe(format!("BEGIN; {changes}"));
        let changed = sqlx::raw_sql(changes).execute(&mut self.other).await;
        changed.expect("changed");
        let call = tokio::spawn(call);
        until_it_waits(&mut self.observer, &call).await;
        let committed = sqlx::raw_sql("COMMIT").execute(&mut self.other).await;
        committed.expect("committed");
        call.await.expect("no panic")
    }

    async fn count(&mut self, what: &'static str) -> i64 {
        let count = sqlx::query_scalar(what).fetch_one(&mut self.observer);
        count.await.expect("counted")
    }

    async fn blocked(&self) -> usize {
        let blocked = self.store.blocked_keys(&BlockedKeyPage::default()).await;
        blocked.expect("listed").len()
    }
}

fn batch(leases: &[Lease], outcome: &Outcome) -> Vec<Settlement> {
    let settlement = |lease: &Lease| Settlement::new(*lease, outcome.clone());
    leases.iter().map(settlement).collect()
}

fn ours(count: usize) -> Vec<LeaseStatus> {
    vec![LeaseStatus::Ours; count]
}

fn dead() -> Outcome {
    let error = "410".to_owned();
    Outcome::Dead {
        reason: DeathReason::Gone,
        error,
    }
}

fn events(count: usize) -> impl Iterator<Item = NewEvent> {
    (0..count).map(|_| NewEvent::bytes("T", "x").to("d"))
}

fn of_one_key(count: usize) -> impl Iterator<Item = NewEvent> {
    events(count).map(|event| event.key("k"))
}

const EXTEND: &str = "UPDATE outbox_events SET lease_until = now() + interval '1 hour'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_ends_the_leases_that_an_extension_has_just_extended() {
    let mut scene = Scene::new(events(4)).await;
    let leases = scene.claim().await;
    let (after, error) = (Duration::from_secs(60), "500".to_owned());
    let outcomes = [
        Outcome::Published,
        Outcome::Retry { after, error },
        Outcome::Release,
        dead(),
    ];
    let settlements: Vec<Settlement> = leases
        .iter()
        .zip(outcomes)
        .map(|(lease, outcome)| Settlement::new(*lease, outcome))
        .collect();
    let store = scene.store.clone();
    let settle = async move { store.settle(&settlements).await };
    let statuses = scene.beside(EXTEND, settle).await.expect("settled");
    assert_eq!(statuses, ours(4));
    let open = "SELECT count(*) FROM outbox_events WHERE lease_token IS NULL";
    assert_eq!(scene.count(open).await, 2);
    let all = "SELECT count(*) FROM outbox_events";
    assert_eq!(scene.count(all).await, 2);
    assert_eq!(scene.count("SELECT count(*) FROM outbox_dead").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_a_claim_gives_back_what_an_extension_has_just_extended() {
    let mut scene = Scene::new(events(4).chain(of_one_key(2))).await;
    let token = scene.claim().await[0].token;
    let store = scene.store.clone();
    let release = async move { store.release_claim(token).await };
    assert_eq!(scene.beside(EXTEND, release).await.expect("released"), 6);
    assert_eq!(scene.claim().await.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_reaches_events_that_a_claim_has_just_parked() {
    let mut scene = Scene::new(events(2)).await;
    let leases = scene.claim().await;
    let store = scene.store.clone();
    let extend = async move { store.extend(&leases, LEASE).await };
    let parking = "UPDATE outbox_events SET shape = 3, lease_until = now() - interval '1 s'";
    let statuses = scene.beside(parking, extend).await.expect("extended");
    assert_eq!(statuses, ours(2));
    let extended = "SELECT count(*) FROM outbox_events WHERE lease_until > now()";
    assert_eq!(scene.count(extended).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_two_who_take_a_keys_dead_letters_away_unblocks_it() {
    for by_prune in [false, true] {
        let mut scene = Scene::new(of_one_key(2)).await;
        let leases = scene.claim().await;
        scene.settle(&leases, dead()).await;
        assert_eq!(scene.blocked().await, 1);
        let discard = format!(
            "SELECT outbox_discard_v1('{{{}}}', NULL, NULL, NULL, NULL, NULL, NULL, 1, 'why')",
            leases[0].seq
        );
        let store = scene.store.clone();
        let rest = async move {
            let all = DeadLetterFilter::all();
            if by_prune {
                let mut prune = outbox_core::Prune::default();
                prune.dead_after = Some(Duration::ZERO);
                store.prune(&prune).await.map(drop)
            } else {
                store.discard(&all, 10, "why").await.map(drop)
            }
        };
        scene.beside(&discard, rest).await.expect("done");
        let (all, page) = (DeadLetterFilter::all(), Page::default());
        let left = scene.store.list(&all, &page).await;
        assert_eq!(left.expect("listed").len(), 0);
        assert_eq!(scene.blocked().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_beside_the_end_of_a_block_blocks_the_key_anew() {
    let mut scene = Scene::new(of_one_key(2)).await;
    let leases = scene.claim().await;
    scene.settle(&leases[..1], dead()).await;
    let discard = "SELECT outbox_discard_v1(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10, 'why')";
    let (store, second) = (scene.store.clone(), batch(&leases[1..], &dead()));
    let settle = async move { store.settle(&second).await };
    let statuses = scene.beside(discard, settle).await.expect("settled");
    assert_eq!(statuses, ours(1));
    assert_eq!(scene.blocked().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_block_sees_a_death_that_came_before_it() {
    let mut scene = Scene::new(of_one_key(2)).await;
    let leases = scene.claim().await;
    scene.settle(&leases[..1], dead()).await;
    let second = format!(
        "SELECT outbox_mixed_keep_v1(ARRAY[{}], (SELECT array_agg(lease_token) FROM outbox_events),
             ARRAY[4::smallint], ARRAY[0::bigint], ARRAY['410'], ARRAY['gone'])",
        leases[1].seq
    );
    let store = scene.store.clone();
    let first = DeadLetterFilter::seq(leases[0].seq);
    let discard = async move { store.discard(&first, 10, "why").await };
    assert_eq!(scene.beside(&second, discard).await.expect("discarded"), 1);
    assert_eq!(scene.blocked().await, 1);
}
